"""Objects that keep a state, in any order of calls, beside slow references."""

import pytest
from fuzz import fuzz
from machines.best_arm import BestArmMachine
from machines.procedures import ProcedureMachine

# What is said of parameters and data, once, changes nothing.
pytestmark = [
    pytest.mark.filterwarnings("ignore:w0=.* is close to:UserWarning"),
    pytest.mark.filterwarnings("ignore:none of the first 100 rewards:UserWarning"),
]


def case(machine, n, steps=25):
    """Return the test of a machine with n programs by default."""
    found = machine.TestCase
    found.settings = fuzz(n, stateful_step_count=steps)
    return found


TestProcedures = case(ProcedureMachine, 40)
TestBestArm = case(BestArmMachine, 40)
