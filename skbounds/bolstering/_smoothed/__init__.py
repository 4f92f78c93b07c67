"""The paper's estimators: losses averaged over a smoothed empirical measure."""
