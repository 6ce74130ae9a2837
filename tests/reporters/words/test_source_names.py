from __future__ import annotations

from pipediag.reporters.words.source_names import SourceNames
from tests import factories, records


def places_of(*files: str) -> SourceNames:
    operations = [
        records.make_operation(f"map_{index}", file=file) for index, file in enumerate(files)
    ]
    return SourceNames(
        factories.make_session(
            pipeline=records.make_pipeline(ops=operations, bottleneck_op_id=None),
            loops=[],
            findings=[],
        )
    )


def test_files_are_shown_from_the_directory_they_share() -> None:
    places = places_of("/home/a/project/train.py", "/home/a/project/data/pipeline.py")

    assert places.at("/home/a/project/data/pipeline.py", 41) == "data/pipeline.py:41"
    assert places.at("/home/a/project/train.py", None) == "train.py"


def test_libraries_are_shown_from_their_package_and_do_not_widen_the_root() -> None:
    library = "/usr/lib/python3.11/site-packages/keras/src/trainer.py"
    places = places_of("/home/a/train.py", library)

    assert places.short(library) == "keras/src/trainer.py"
    assert places.short("/home/a/train.py") == "train.py"


def test_relative_and_unrelated_files_stay_as_they_are() -> None:
    places = places_of("/home/a/train.py")

    assert places.short("train.py") == "train.py"
    assert places.short("/opt/other.py") == "/opt/other.py"
    assert places.at(None, 3) == ""


def test_a_file_system_root_is_no_project() -> None:
    assert places_of("/a/x.py", "/b/y.py").short("/a/x.py") == "/a/x.py"


def test_the_end_of_an_endless_path_is_kept() -> None:
    shown = places_of("/home/a/train.py").short("/opt" + "/deep" * 100 + "/file.py")

    assert len(shown) == 100
    assert shown.endswith("/deep/file.py")
