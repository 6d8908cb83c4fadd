"""python -m stages.studies.plateau FOLDER"""

from stages.studies.command import judge
from stages.studies.plateau import study

if __name__ == "__main__":
    judge(study)
