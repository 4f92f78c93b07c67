"""Objects that keep a state, in any order of calls, beside slow references.

``pytest tests/test_machines.py --hypothesis-profile=deep`` runs many more programs, of
which ``SKBOUNDS_EXAMPLES`` is the number for each machine.
"""

from importlib.util import find_spec

import pytest
from fuzz import fuzz
from machines.best_arm import BestArmMachine
from machines.procedures import ProcedureMachine
from machines.streams import StreamMachine, StructuredMachine
from machines.studies import BatchMachine, MonitorMachine, StudyMachine

# What is said of parameters and data, once, changes nothing.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{words}:UserWarning")
    for words in (
        "w0=.* is close to",
        "none of the first 100 rewards",
        "A row is longer than feature_norm",
        "X does not have valid feature names",
        "The bound",
    )
]


def case(machine, n, steps=25):
    """Return the test of a machine, with n programs by default."""
    found = machine.TestCase
    found.settings = fuzz(n, stateful_step_count=steps)
    return found


TestProcedures = case(ProcedureMachine, 60)
TestBatches = case(BatchMachine, 30, 12)
TestBestArm = case(BestArmMachine, 60)
TestStudies = case(StudyMachine, 40)
TestStreams = case(StreamMachine, 60, 20)
TestStructured = case(StructuredMachine, 30, 12)
TestMonitors = case(MonitorMachine, 30, 15)
if find_spec("dask") and find_spec("pandas"):
    from machines.chunks import ChunkMachine

    TestChunks = case(ChunkMachine, 10, 12)
