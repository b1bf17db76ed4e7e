"""Skills: written knowledge in directories, which agents load when they need it, and the programs that go with it."""

from runner.skills.archive import ArchiveLimits
from runner.skills.arguments import RunRules
from runner.skills.directory import SkillDirectory
from runner.skills.install import install_skill
from runner.skills.preload import SkillLoad, preload_skills
from runner.skills.reading import SkillLimits
from runner.skills.telling import Telling
from runner.skills.tools import Skills
from runner.skills.visible import ScopedSkills, VisibleSkills, scope_path

__all__ = [
    "ArchiveLimits",
    "RunRules",
    "ScopedSkills",
    "SkillDirectory",
    "SkillLimits",
    "SkillLoad",
    "Skills",
    "Telling",
    "VisibleSkills",
    "install_skill",
    "preload_skills",
    "scope_path",
]
