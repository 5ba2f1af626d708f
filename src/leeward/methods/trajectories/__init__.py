"""(code, age) trajectories made k-anonymous (LDA: A-GS and MDAV; Tamersoy 2011, chapter IV)."""

from leeward.methods.trajectories.parameters import Trajectories

__all__ = ["Trajectories"]
