"""Skills in directories: how a `SKILL.md` is read, which skill counts, what is seen when, what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphagent.errors import ServiceError, SkillNotFound, SkillRejected, UsageError
from graphagent.skills import SkillSummary
from runner.skills import ScopedSkills, SkillDirectory, SkillLimits, VisibleSkills, scope_path
from runner.skills.front_matter import parse_skill

pytestmark = pytest.mark.anyio


async def names(skills: SkillDirectory | VisibleSkills) -> list[str]:
    """The names of the skills that there are."""
    return [one.name for one in await skills.summaries()]


# -- the text of a skill -------------------------------------------------------------------------


async def test_case_1_without_front_matter(root: Path) -> None:
    """Without front matter a skill is called as its directory, and all of the file is its body."""
    (root / "plain").mkdir()
    (root / "plain/SKILL.md").write_text("# Plain\n---\nname: other\n---\n")
    found = await SkillDirectory(root).get("plain")
    assert (found.name, found.description, found.body) == ("plain", "", "# Plain\n---\nname: other\n---\n")


def test_case_2_line_ends_of_windows() -> None:
    """A file with CRLF is read as the same file with LF."""
    text = "---\nname: a\ndescription: |\n  one\n  two\n---\nbody\nmore\n"
    assert parse_skill(text.replace("\n", "\r\n")) == parse_skill(text) == ("a", "one\ntwo", "body\nmore\n")


def test_case_3_front_matter_that_is_not_closed() -> None:
    """Front matter without an end is none: the whole text is the body."""
    text = "---\nname: a\ndescription: b\n"
    assert parse_skill(text) == ("", "", text)


def test_case_4_values_are_literal() -> None:
    """A value keeps its quotes, its `#` and its further colons."""
    text = '---\nname: a\ndescription: "quoted # text: more"\nno colon here\n---\n'
    assert parse_skill(text).description == '"quoted # text: more"'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("|\n  one\n\n  two\n", "one\n\ntwo"),
        ("|-\n  one\n    two\n  three", "one\n  two\nthree"),
        (">\n  one\n  two\n\n  three\n", "one two\nthree"),
        (">\n  one\n    code\n  two\n", "one\n  code\ntwo"),
        ("|2\n    one\n  two\n", "  one\ntwo"),
        ("|\n", ""),
    ],
)
def test_block_scalars(value: str, expected: str) -> None:
    """`|` keeps lines and `>` folds them, as YAML has it; line ends at the end are taken off."""
    assert parse_skill(f"---\ndescription: {value}\nname: a\n---\nb").description == expected
    assert parse_skill(f"---\ndescription: {value}\nname: a\n---\nb").name == "a"


@pytest.mark.parametrize("value", ["|oops\n  one\n", "|\n\tone\n", "|\n    one\n  two\n"])
def test_block_scalars_that_are_none(value: str) -> None:
    """A block that YAML wouldn't take is left out; the other keys count."""
    assert parse_skill(f"---\ndescription: {value}\nname: a\n---\nb") == ("a", "", "b")


@given(st.text(alphabet="-nadescriptionm:|> \n\r\t#'\"12+x", max_size=80), st.booleans())
def test_any_text_can_be_read(text: str, closed: bool) -> None:
    """Whatever stands in a `SKILL.md`, reading it ends, values have no line ends at their ends, and the body is what
    comes after the front matter."""
    whole = f"---\n{text}\n---\nbody" if closed else text
    found = parse_skill(whole)
    assert found == parse_skill(whole.replace("\r\n", "\n"))
    assert not found.name.endswith("\n")
    assert whole.replace("\r\n", "\n").endswith(found.body)


# -- which skills there are ----------------------------------------------------------------------


async def test_case_5_the_first_root_wins(tmp_path: Path, write_skill) -> None:
    """Of two skills with one name that of the first root counts, and the other is told as refused."""
    one, other = tmp_path / "one", tmp_path / "other"
    write_skill("same", "first", under=one)
    write_skill("same", "second", under=other)
    write_skill("more", "of the other", under=other)
    skills = SkillDirectory(one, other, one)
    assert await skills.summaries() == [SkillSummary("more", "of the other"), SkillSummary("same", "first")]
    [refused] = skills.refused
    assert refused.where == str(other / "same")
    assert refused.why == f"the name 'same' is taken by '{one / 'same'}'"


async def test_case_6_a_new_skill_needs_a_refresh(root: Path, write_skill) -> None:
    """A directory that comes later is a skill after `refresh`, not before."""
    skills = SkillDirectory(root)
    write_skill("late", "new")
    assert await names(skills) == []
    with pytest.raises(SkillNotFound):
        await skills.get("late")
    assert await skills.refresh() == []
    assert await names(skills) == ["late"]


async def test_case_7_an_edit_is_seen(root: Path, write_skill) -> None:
    """What is changed in a `SKILL.md` is seen without a refresh, in the list and in the skill."""
    write_skill("a", "old", "old text")
    skills = SkillDirectory(root)
    before = await skills.get("a")
    write_skill("a", "new", "new text", doc_DOT_md="hello")
    assert await skills.summaries() == [SkillSummary("a", "new")]
    after = await skills.get("a")
    assert (after.description, after.body.strip(), [doc.path for doc in after.docs]) == ("new", "new text", ["doc.md"])
    assert before.digest != after.digest


async def test_case_8_a_deleted_skill_is_gone(root: Path, write_skill) -> None:
    """Without its `SKILL.md` a skill is left out of the list, and asking for it is an error that names the others."""
    directory = write_skill("gone")
    write_skill("here")
    skills = SkillDirectory(root)
    (directory / "SKILL.md").unlink()
    assert await names(skills) == ["here"]
    with pytest.raises(SkillNotFound, match="unknown skill: 'gone'; known: 'here'"):
        await skills.get("gone")


async def test_documents_are_texts_beside_the_skill(root: Path, write_skill) -> None:
    """Documents are `.md` and `.txt` at any depth and in any case, sorted, but no `SKILL.md`; files are all of them."""
    directory = write_skill("a", b_DOT_md="b", sub__A_DOT_TXT="a", run_DOT_py="print()", sub__skill_DOT_md="no")
    (directory / "run.py").chmod(0o755)
    (directory / ".git").mkdir()
    (directory / ".git/config.txt").write_text("no")
    skills = SkillDirectory(root)
    assert [(doc.path, doc.text) for doc in (await skills.get("a")).docs] == [("b.md", "b"), ("sub/A.TXT", "a")]
    files = await skills.files("a")
    assert [one.path for one in files] == ["SKILL.md", "b.md", "run.py", "sub/A.TXT", "sub/skill.md"]
    assert [one.path for one in files if one.executable] == ["run.py"]


async def test_roots_may_be_urls_and_may_not_be_there(root: Path, tmp_path: Path, write_skill) -> None:
    """A `file://` url is a root, a blank one is none, one that isn't there has no skills; other schemes are errors."""
    write_skill("a")
    skills = SkillDirectory(f"file://{root}", "  ", tmp_path / "missing")
    assert await names(skills) == ["a"]
    assert skills.roots == (root, tmp_path / "missing")
    for url in ("https://example.com/skills.zip", "file://elsewhere/skills"):
        with pytest.raises(UsageError, match="no directory of this machine"):
            SkillDirectory(url)


async def test_a_failed_refresh_keeps_what_was_known(tmp_path: Path, write_skill) -> None:
    """If a root can't be read the refresh is an error, and the skills are those of before."""
    place = tmp_path / "place"
    write_skill("a", under=place)
    skills = SkillDirectory(place)
    place.rename(tmp_path / "moved")
    place.write_text("no directory")
    with pytest.raises(ServiceError, match="could not be read"):
        await skills.refresh()
    place.unlink()
    (tmp_path / "moved").rename(place)
    assert await names(skills) == ["a"]


# -- what is refused -----------------------------------------------------------------------------


async def test_c243_a_skill_that_leads_outside_is_refused(root: Path, tmp_path: Path, write_skill) -> None:
    """A skill whose main file, other file or directory is a link out of the roots is refused with the reason, is never
    read, and the others are there."""
    secret = tmp_path / "secret.md"
    secret.write_text("---\nname: stolen\n---\nsecret words")
    outside = write_skill("outside", under=tmp_path / "elsewhere")
    (root / "main").mkdir()
    (root / "main/SKILL.md").symlink_to(secret)
    (write_skill("doc") / "notes.md").symlink_to(secret)
    (root / "dir").symlink_to(outside)
    (root / "dangling").mkdir()
    (root / "dangling/SKILL.md").symlink_to(tmp_path / "nothing")
    (root / "loop").mkdir()
    (root / "loop/SKILL.md").symlink_to(root / "loop/SKILL.md")
    write_skill("fine")
    skills = SkillDirectory(root)
    assert await names(skills) == ["fine"]
    why = {Path(one.where).name: one.why for one in skills.refused}
    assert set(why) == {"main", "doc", "dir", "dangling", "loop"}
    assert all("outside of the trusted roots" in why[name] for name in ("main", "doc", "dir"))
    assert all("leads nowhere" in why[name] for name in ("dangling", "loop"))
    for name in ("stolen", "main", "doc", "outside"):
        with pytest.raises(SkillNotFound):
            await skills.get(name)


async def test_a_link_made_later_is_not_followed(root: Path, tmp_path: Path, write_skill) -> None:
    """A file of a known skill that becomes a link out of the roots makes the skill unusable; nothing is read."""
    directory = write_skill("a", doc_DOT_md="fine")
    skills = SkillDirectory(root)
    (tmp_path / "secret").write_text("secret words")
    (directory / "doc.md").unlink()
    (directory / "doc.md").symlink_to(tmp_path / "secret")
    for read in (skills.get, skills.files):
        with pytest.raises(SkillRejected, match="outside of the trusted roots"):
            await read("a")
    (directory / "SKILL.md").unlink()
    (directory / "SKILL.md").symlink_to(tmp_path / "secret")
    assert await names(skills) == []


async def test_links_inside_the_roots_are_followed(root: Path, write_skill) -> None:
    """A link to a file below a root is that file; a directory that is linked is found where it is."""
    write_skill("a", shared_DOT_md="shared")
    (write_skill("b") / "own.md").symlink_to(root / "a/shared.md")
    (root / "again").symlink_to(root / "a")
    skills = SkillDirectory(root)
    assert await names(skills) == ["a", "b"]
    assert [doc.text for doc in (await skills.get("b")).docs] == ["shared"]
    assert skills.refused == ()


async def test_what_is_no_skill_is_refused_and_said(root: Path, write_skill) -> None:
    """Bad names, texts that aren't UTF-8, pipes, and what is too large are refused each with its reason."""
    for number, name in enumerate(["../up", "a b", "con", '"quoted"', "x" * 65, "a..b"]):
        (root / f"name{number}").mkdir()
        (root / f"name{number}/SKILL.md").write_text(f"---\nname: {name}\n---\n")
    (root / "bytes").mkdir()
    (root / "bytes/SKILL.md").write_bytes(b"\xff\xfe")
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe/SKILL.md")
    os.mkfifo(write_skill("pipe-inside") / "pipe")
    write_skill("long", body="x" * 3000)
    write_skill("large", data="x" * 9000)
    write_skill("many", **{f"f{number}": "" for number in range(30)})
    write_skill("fine")
    skills = SkillDirectory(root, limits=SkillLimits(main_bytes=2000, file_bytes=8000, files=20))
    assert await names(skills) == ["fine"]
    why = {Path(one.where).name: one.why for one in skills.refused}
    assert len(why) == 12
    assert all("is no name for a skill" in why[f"name{number}"] for number in range(6))
    assert "no UTF-8" in why["bytes"]
    assert "no regular file" in why["pipe"]
    assert "no regular file" in why["pipe-inside"]
    assert "more than 2000 bytes" in why["long"]
    assert "at most 8000" in why["large"]
    assert "more than 20 files" in why["many"]


async def test_only_so_many_skills(root: Path, write_skill) -> None:
    """Beyond the limit of skills further ones are refused."""
    for name in "abcd":
        write_skill(name)
    skills = SkillDirectory(root, limits=SkillLimits(skills=3))
    assert await names(skills) == ["a", "b", "c"]
    assert [Path(one.where).name for one in skills.refused] == ["d"]


# -- some of them --------------------------------------------------------------------------------


async def test_hidden_skills_are_as_if_not_there(root: Path, write_skill) -> None:
    """What a filter hides isn't listed, isn't found, and isn't named in the error."""
    write_skill("open", "for all")
    write_skill("opera", "for some")
    base = SkillDirectory(root)
    skills = VisibleSkills(base, lambda one: one.description == "for all")
    assert await names(skills) == ["open"]
    assert (await skills.get("open")).name == "open"
    assert [one.path for one in await skills.files("open")] == ["SKILL.md"]
    for read in (skills.get, skills.files):
        with pytest.raises(SkillNotFound) as told:
            await read("opera")
        assert str(told.value) == "unknown skill: 'opera'; did you mean 'open'?"
    write_skill("late", "for all")
    await skills.refresh()
    assert await names(skills) == ["late", "open"]


async def test_scopes_have_directories_of_their_own(tmp_path: Path, write_skill) -> None:
    """Each app or user has its own directory; names that aren't safe become digests; missing ones are errors."""
    assert scope_path("app", "shop") == "apps/shop"
    assert scope_path("user", "shop", "ann") == "users/shop/ann"
    odd = ["../up", "a/b", "a..b", "", "x" * 129, "id-0123456789abcdef", ".", "ä"]
    paths = {scope_path("user", "shop", name) for name in odd if name}
    assert len(paths) == len(odd) - 1
    assert all(path.startswith("users/shop/id-") and len(path) == len("users/shop/id-") + 16 for path in paths)
    for app, user in (("", "ann"), ("shop", "")):
        with pytest.raises(UsageError, match="give its name"):
            scope_path("user", app, user)
    with pytest.raises(UsageError, match="did you mean 'user'"):
        ScopedSkills(tmp_path, "users")  # type: ignore[arg-type]
    write_skill("own", under=tmp_path / "users/shop/ann")
    write_skill("common", under=tmp_path / "shared")
    scoped = ScopedSkills(tmp_path, "user", shared=(tmp_path / "shared",))
    assert await names(await scoped.of("shop", "ann")) == ["common", "own"]
    assert await names(await scoped.of("shop", "ben")) == ["common"]
