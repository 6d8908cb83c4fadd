"""python -m stages.studies.english FOLDER"""

from stages.studies.command import judge
from stages.studies.english import study

if __name__ == "__main__":
    judge(study)
