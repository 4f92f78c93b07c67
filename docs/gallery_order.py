"""The gallery's examples in reading order."""

TOPICS = {
    "tutorials": ["credit", "screening", "certificate", "flights", "curve", "geyser"]
    + ["trial"],
    "smp": ["calibration", "bands", "any", "log_normalizer"],
    "bolstering": [
        "estimate",
        "replace_cross_validation",
        "kernels",
        "where_estimates",
    ],
    "pac_bayes": ["certificates", "posteriors", "vacuous"],
    "fenchel_young": ["stream", "fresh", "growing", "multilabel", "ranking", "tagging"],
    "kernel_boost": ["regression", "relevance", "stopping", "adaboost"],
    "hmm": ["states", "forecast", "convergence"],
    "sequential": ["ab_test", "revenue", "experiment", "fdr", "sqlite"],
}


class ReadingOrder:
    """Sort the files of a topic; an error for one that has no place above."""

    def __init__(self, src_dir):
        self.topic = str(src_dir).replace("\\", "/").rstrip("/").rpartition("/")[2]

    def __repr__(self):
        return "<ReadingOrder>"

    def __call__(self, filename):
        for number, words in enumerate(TOPICS.get(self.topic, ())):
            if words in filename.removeprefix(f"plot_{self.topic}"):
                return number
        raise ValueError(f"{filename} of {self.topic!r} has no place in TOPICS")
