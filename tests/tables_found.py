"""What the tables have found: each failed once."""

import math

from tables import Table

inf, nan = math.inf, math.nan
# An estimator of test_tables.CASES, rows of the fit, and other rows.
FOUND = [
    ("BaumWelchHMM", Table(n=4, d=1), Table(n=25, d=1, steps=(("shift", 1e16),))),
    ("BaumWelchHMM, categorical", Table(n=7, base="counts"), Table()),
    ("BaumWelchHMM, full", Table(n=2, d=5, seed=26), Table(d=5, seed=68)),
    ("BaumWelchHMM, full", Table(seed=61), Table()),
    (
        "BaumWelchHMM, poisson",
        Table(base="integers", steps=(("scale", 1e150),), form="float16"),
        Table(),
    ),
    ("BolsteredScorer", Table(d=0, form="frame"), Table()),
    ("BolsteredScorer", Table(n=0, form="rows"), Table()),
    (
        "BolsteredScorer",
        Table(n=5, form="int16", target="x 1e+07", weighted="spread"),
        Table(),
    ),
    (
        "BolsteredScorer",
        Table(steps=(("column", 0, -1.7976931348623157e308),)),
        Table(),
    ),
    (
        "BolsteredScorer",
        Table(steps=(("scale column", 4, 1e200), ("scale", 1e150))),
        Table(),
    ),
    ("BolsteredScorer", Table(steps=(("scale row", 7, 1e160),)), Table()),
    ("BolsteredScorer", Table(target="x 1e+20"), Table()),
    ("BolsteredScorer", Table(weighted="all denormal"), Table()),
    ("BolsteredScorer, xy", Table(target="one huge"), Table()),
    (
        "BolsteredScorer, xy",
        Table(target="signal", weighted="bad: NaN number"),
        Table(),
    ),
    ("BolsteredScorer, xy", Table(target="signal", weighted="one huge"), Table()),
    (
        "BolsteredScorer, xy",
        Table(target="x 1e+200", weighted="bad: NaN number"),
        Table(),
    ),
    ("BolsteredSearchCV", Table(steps=(("scale row", 4, 1e160),)), Table()),
    (
        "BolsteredSearchCV, ridge",
        Table(
            n=2, d=1, steps=(("shift", 1e100),), form="csr", target="x 1e+140", seed=30
        ),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost",
        Table(n=2, target="signal", weighted="bad: NaN number"),
        Table(),
    ),
    ("EarlyStoppedKernelBoost", Table(target="x 1e+20", weighted="one huge"), Table()),
    (
        "EarlyStoppedKernelBoost, gcv",
        Table(n=1, steps=(("scale row", 3, 1e-160),), target="signal"),
        Table(),
    ),
    ("EarlyStoppedKernelBoost, gcv", Table(target="NaT"), Table()),
    ("EarlyStoppedKernelBoost, gcv", Table(target="bool"), Table()),
    (
        "EarlyStoppedKernelBoost, gd",
        Table(n=1, target="signal", weighted="bad: NaN number"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, gd",
        Table(n=1, target="signal", weighted="one denormal"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, gd",
        Table(n=40, target="signal", weighted="bad: NaN number"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, huber",
        Table(base="binary", target="signal", weighted="all huge"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, lowrank",
        Table(target="signal", weighted="all huge"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, precomputed",
        Table(base="counts", steps=(("sort",),), target="signal", weighted="one huge"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, precomputed",
        Table(d=1, steps=(("column", 1, 1e-154),), target="signal"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, precomputed",
        Table(steps=(("scale", 1e300),), target="signal"),
        Table(),
    ),
    ("EarlyStoppedKernelBoost, precomputed", Table(target="csr"), Table()),
    (
        "EarlyStoppedKernelBoost, precomputed",
        Table(target="signal", weighted="all small"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, sobolev",
        Table(
            base="counts",
            steps=(("column", 4, 65504.0),),
            target="signal",
            weighted="bad: NaN number",
        ),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, sobolev",
        Table(base="counts", target="x 1e+20", weighted="all tiny"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, sobolev",
        Table(base="zeros", form="uint64", target="signal", weighted="all small"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, sobolev",
        Table(n=1, base="counts", target="signal", weighted="one tiny"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, validation",
        Table(form="unsorted", target="signal"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, validation",
        Table(target="signal", weighted="one huge"),
        Table(),
    ),
    ("EarlyStoppedKernelBoostClassifier", Table(weighted="all largest"), Table()),
    ("EarlyStoppedKernelBoostClassifier", Table(weighted="bad: NaN number"), Table()),
    ("EarlyStoppedKernelBoostClassifier", Table(weighted="one huge"), Table()),
    (
        "EarlyStoppedKernelBoostClassifier, exponential",
        Table(),
        Table(steps=(("scale", 1e100), ("scale", 1e300))),
    ),
    (
        "EarlyStoppedKernelBoostClassifier, exponential",
        Table(base="zeros", weighted="one huge", seed=66),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoostClassifier, exponential",
        Table(target="x 1e+200"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoostClassifier, exponential",
        Table(weighted="one denormal"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoostClassifier, exponential",
        Table(weighted="one huge"),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoostClassifier, scale",
        Table(target="a class per row", weighted="one tiny"),
        Table(),
    ),
    ("EarlyStoppedKernelBoostClassifier, scale", Table(weighted="all tiny"), Table()),
    (
        "FenchelYoungOnlineClassifier, ogd",
        Table(),
        Table(steps=(("cell", 6, 7, inf), ("cell", 5, 5, -inf))),
    ),
    (
        "FenchelYoungOnlineClassifier, ogd",
        Table(steps=(("scale column", 7, 1e300),), form="float32"),
        Table(),
    ),
    (
        "FenchelYoungOnlineOrdinalClassifier",
        Table(),
        Table(steps=(("cell", 3, 5, -1.7976931348623157e308),)),
    ),
    (
        "FenchelYoungOnlineStructured",
        Table(steps=(("cell", 7, 5, -inf), ("cell", 0, 3, inf)), target="two of four"),
        Table(),
    ),
    ("FenchelYoungOnlineStructured", Table(target="scalar"), Table()),
    (
        "GaussianSMP",
        Table(),
        Table(n=1, steps=(("scale row", 3, 1e150),), form="float32"),
    ),
    ("GaussianSMP", Table(steps=(("scale", 1e20), ("scale", 1e300))), Table()),
    ("GaussianSMP", Table(weighted="all tiny"), Table()),
    ("GaussianSMP", Table(weighted="bad: NaN number"), Table()),
    ("GaussianSMP, mle", Table(d=1), Table(d=1, steps=(("shift", -1e300),))),
    ("GaussianSMP, mle", Table(weighted="all largest"), Table()),
    (
        "KernelRidgeSMP, precomputed",
        Table(steps=(("cell", 7, 6, -inf),), target="signal"),
        Table(),
    ),
    (
        "KernelRidgeSMP, precomputed",
        Table(target="signal"),
        Table(steps=(("scale", 1e154),), target="signal"),
    ),
    (
        "KernelRidgeSMP, precomputed",
        Table(target="signal", weighted="all largest"),
        Table(),
    ),
    (
        "KernelRidgeSMP, precomputed",
        Table(target="signal", weighted="bad: NaN number"),
        Table(),
    ),
    ("KernelRidgeSMP, precomputed", Table(target="x 1e-300"), Table()),
    ("KernelRidgeSMP, rbf", Table(target="signal", weighted="all denormal"), Table()),
    ("KernelRidgeSMP, rbf", Table(target="signal", weighted="all largest"), Table()),
    ("KernelRidgeSMP, rbf", Table(target="signal", weighted="all tiny"), Table()),
    (
        "MultinomialSMP",
        Table(base="integers", steps=(("scale", 1e160),), form="float16"),
        Table(),
    ),
    ("MultinomialSMP", Table(base="integers", weighted="all largest"), Table()),
    (
        "MultinomialSMP",
        Table(base="integers", weighted="all largest", seed=39),
        Table(),
    ),
    ("MultinomialSMP", Table(base="integers", weighted="bad: NaN number"), Table()),
    (
        "PACBayesEnsembleClassifier, tandem",
        Table(steps=(("cell", 1, 6, -1.7976931348623157e308),)),
        Table(),
    ),
    ("PACBayesEnsembleClassifier, tandem", Table(target="lists"), Table()),
    (
        "PACBayesSVMEnsemble, bound",
        Table(d=1),
        Table(d=1, steps=(("cell", 5, 6, 1.7976931348623157e308),)),
    ),
    ("PACBayesSVMEnsemble, precomputed", Table(), Table(steps=(("scale", 1e200),))),
    (
        "PACBayesSVMEnsemble, precomputed",
        Table(n=40, steps=(("shift column", 2, 1e154),)),
        Table(),
    ),
    ("PACBayesSVMEnsemble, precomputed", Table(steps=(("cell", 2, 6, inf),)), Table()),
    (
        "PACBayesSVMEnsemble, precomputed",
        Table(steps=(("shift column", 3, 1e154),)),
        Table(),
    ),
    ("PACBayesSVMEnsemble, progressive", Table(classes=5, seed=43), Table()),
    ("PoissonSMP", Table(base="counts", form="ragged"), Table()),
    ("PoissonSMP", Table(base="counts", steps=(("scale", 1e154),)), Table()),
    (
        "PoissonSMP",
        Table(base="counts", steps=(("shift", 1e100),), weighted="one huge"),
        Table(),
    ),
    ("PoissonSMP", Table(base="counts", weighted="all huge"), Table()),
    (
        "PoissonSMP",
        Table(base="counts", weighted="all large"),
        Table(base="counts", steps=(("column", 7, 1e300),)),
    ),
    ("PoissonSMP", Table(base="counts", weighted="all largest"), Table()),
    ("PoissonSMP", Table(base="counts", weighted="bad: NaN number"), Table()),
    (
        "PoissonSMP",
        Table(n=5, base="counts", steps=(("cell", 7, 7, 1.7976931348623157e308),)),
        Table(),
    ),
    ("RidgeSMP", Table(target="signal", weighted="all largest"), Table()),
    (
        "RidgeSMP, bayes",
        Table(d=3, target="signal"),
        Table(d=3, steps=(("cell", 2, 1, 1e144),), target="signal"),
    ),
    (
        "RidgeSMP, joint",
        Table(d=1, target="x 1e+100"),
        Table(d=1, steps=(("shift", 1e100),), target="signal"),
    ),
    (
        "RidgeSMP, joint",
        Table(
            steps=(("cell", 7, 0, 1e160), ("scale", 1e-100)),
            target="signal",
            weighted="counts",
        ),
        Table(),
    ),
    (
        "RidgeSMP, joint",
        Table(target="signal"),
        Table(
            steps=(("cell", 5, 7, -1e300), ("cell", 6, 7, 3.5e38)),
            form="float16",
            target="signal",
        ),
    ),
    ("RidgeSMP, joint", Table(target="signal", weighted="all large"), Table()),
    ("RidgeSMP, loo", Table(d=5, steps=(("shift", 1e100),), target="signal"), Table()),
    (
        "RidgeSMP, loo",
        Table(d=5, target="x 1e+140"),
        Table(d=5, steps=(("shift", 1e16),), target="signal"),
    ),
    (
        "RidgeSMP, loo",
        Table(form="csr bool", target="signal", weighted="all largest"),
        Table(),
    ),
    (
        "RidgeSMP, loo",
        Table(form="csr", target="signal", weighted="all largest"),
        Table(),
    ),
    (
        "RidgeSMP, loo",
        Table(steps=(("shift", -10000000.0),), target="signal", weighted="one huge"),
        Table(),
    ),
    (
        "RidgeSMP, theory",
        Table(form="csr", target="x 1e-160", weighted="one huge"),
        Table(),
    ),
    ("RidgeSMP, theory", Table(steps=(("scale", 1e100),), target="signal"), Table()),
    (
        "RidgeSMP, theory",
        Table(steps=(("shift", 1e16),), target="signal", weighted="all denormal"),
        Table(),
    ),
    ("RidgeSMP, theory", Table(target="csr"), Table()),
    ("RidgeSMP, theory", Table(target="signal", weighted="bad: NaN number"), Table()),
    ("RidgeSMP, theory", Table(target="signal", weighted="one huge"), Table()),
    ("RidgeSMP, theory", Table(target="x 1e+100"), Table()),
    ("RidgeSMPCV", Table(target="csr"), Table()),
    (
        "RidgeSMPCV",
        Table(target="signal"),
        Table(steps=(("scale row", 0, 1e150), ("scale", 1e200)), target="signal"),
    ),
    ("RidgeSMPCV", Table(target="signal", weighted="all largest"), Table()),
    ("SMPClassifier, influence", Table(weighted="all largest"), Table()),
    ("SMPLogisticRegression", Table(weighted="one huge"), Table()),
    ("SMPLogisticRegression, balanced", Table(weighted="all tiny", classes=3), Table()),
    (
        "SMPLogisticRegression, one-step",
        Table(d=5),
        Table(d=5, steps=(("column", 1, 1e160),), form="csr"),
    ),
    (
        "SMPLogisticRegression, theory",
        Table(d=30, base="mostly zero", form="uint64", seed=21),
        Table(d=30, steps=(("scale column", 7, 1e160),), form="csr"),
    ),
    (
        "SMPLogisticRegression, theory",
        Table(
            steps=(("cell", 1, 2, -10000000.0),), form="csr array", weighted="all huge"
        ),
        Table(),
    ),
    ("SMPLogisticRegression, theory", Table(weighted="all largest"), Table()),
    ("SMPLogisticRegression, theory", Table(weighted="bad: NaN number"), Table()),
    (
        "SMPLogisticRegressionCV",
        Table(d=5, steps=(("scale", 1e-300),)),
        Table(d=5, form="dates"),
    ),
    (
        "SMPLogisticRegressionCV, best",
        Table(base="zeros", steps=(("cell", 5, 7, 5e-324),)),
        Table(),
    ),
    ("SMPLogisticRegressionCV, best", Table(weighted="all largest"), Table()),
    ("SMPLogisticRegressionCV, best", Table(weighted="one huge"), Table()),
    (
        "SMPRegressor, influence",
        Table(base="ones", target="x 1e+140", weighted="all denormal", seed=93),
        Table(),
    ),
    (
        "SMPRegressor, influence",
        Table(steps=(("shift column", 0, 1e16),), target="counts"),
        Table(),
    ),
    (
        "SMPRegressor, influence",
        Table(target="counts"),
        Table(steps=(("cell", 0, 3, -1e154),), target="counts"),
    ),
    ("SMPRegressor, influence", Table(target="zero"), Table()),
    (
        "RidgeSMPCV",
        Table(n=7, d=1, target="offset", weighted="spread", seed=70),
        Table(),
    ),
    (
        "EarlyStoppedKernelBoost, lowrank",
        Table(n=7, steps=(("column", 0, nan),), form="int8", target="x 1e+140", seed=2),
        Table(),
    ),
    (
        "BaumWelchHMM, student",
        Table(d=5, steps=(("scale", 1e-100),)),
        Table(d=5, steps=(("scale row", 6, 1e100),)),
    ),
]
