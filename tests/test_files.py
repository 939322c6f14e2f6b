"""Folders are replaced whole or not at all, whenever they are interrupted."""

import os

import pytest

from felicific._files import folder_whole


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", [1, 2])
def test_an_interrupted_folder_is_as_it_was_or_new(tmp_path, monkeypatch, step, moment):
    """A signal just before or just after either step of the exchange loses nothing and leaves nothing."""
    target = tmp_path / "found"
    target.mkdir()
    (target / "old.txt").write_text("old")
    real, steps = os.replace, []

    def replace(source, goal):
        steps.append(goal)
        if len(steps) == step and moment == "before":
            raise SystemExit(143)
        real(source, goal)
        if len(steps) == step:
            raise SystemExit(143)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(SystemExit), folder_whole(target) as room:
        (room / "new.txt").write_text("new")
    assert os.listdir(tmp_path) == ["found"]
    assert (target / "old.txt").read_text() == "old"


def test_a_folder_that_failed_leaves_none_that_it_is_in(tmp_path):
    """Folders that were made on the way go too; what was there stays, and so does what others put there."""
    there = tmp_path / "there"
    there.mkdir()
    with pytest.raises(ValueError, match="no"), folder_whole(there / "one" / "two"):
        raise ValueError("no")
    assert os.listdir(tmp_path) == ["there"]
    assert os.listdir(there) == []

    def disturbed():
        (there / "one" / "other.txt").write_text("")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), folder_whole(there / "one" / "two"):
        disturbed()
    assert os.listdir(there / "one") == ["other.txt"]
    with folder_whole(there / "deep" / "er"):
        pass
    assert (there / "deep" / "er").is_dir()
