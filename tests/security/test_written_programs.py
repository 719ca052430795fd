"""Data never becomes code in what is written: names and texts are what they are in programs too."""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize

import pytest
import tvm
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tvm import te

from lowerscope.core.export.files import file_names, script_files
from lowerscope.core.files import python_text
from lowerscope.core.ir.script import function_script
from lowerscope.core.model.problems import LowerscopeError
from lowerscope.core.stages import Pipeline
from tests.security.hostile_names import RUN, it_ran, names, recipes
from tests.security.written_programs import check

texts = st.one_of(names, st.text(st.characters()))


@given(text=texts)
def test_a_text_is_the_same_in_a_program(text: str) -> None:
    for written in (python_text.quoted(text), python_text.quoted_lines(text)):
        assert ast.literal_eval(written) == text
        assert all(each == "\n" or each.isprintable() for each in written)
    program = f'"""Of {python_text.docstring(text)}."""\n'
    assert ast.get_docstring(ast.parse(program), clean=False) == f"Of {text}."
    assert "\n" not in python_text.docstring(text)


def test_strings_of_scripts_have_their_characters() -> None:
    x = te.placeholder((4,), "float32", name="x")
    function = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1, name="y")])
    noted = function.with_attr("é\\xC3", "名\\xC3")
    script = function_script(noted, "main")
    assert '"é\\\\xC3": "名\\\\xC3"' in script
    read = tvm.script.from_source(script)
    assert read.attrs["é\\xC3"] == "名\\xC3"


@given(text=texts)
def test_a_comment_is_one_line(text: str) -> None:
    written = f"x = 1  {python_text.comment(text)}\ny = 2\n"
    kinds = [each.type for each in tokenize.generate_tokens(io.StringIO(written).readline)]
    assert kinds.count(tokenize.COMMENT) == 1
    assert len(ast.parse(written).body) == 2


@given(text=st.one_of(texts, st.sampled_from(keyword.kwlist)))
def test_names_of_attributes_and_arguments(text: str) -> None:
    assert python_text.is_identifier(python_text.identifier(text))
    owner = type("Owner", (), {})()
    vars(owner)[text] = 3
    assert eval(python_text.attribute("owner", text), {"owner": owner}) == 3
    (argument,) = python_text.keywords([(text, "4")])
    assert eval(f"dict({argument})") == {text: 4}
    assert not it_ran()


@settings(
    max_examples=3,
    deadline=None,
    database=None,
    phases=(Phase.generate,),  # each takes seconds, and to shrink one takes dozens
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_programs_with_hostile_names(
    data: st.DataObject, pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("model")
    check(pipeline, data.draw(recipes(folder)), folder / "out")


def test_a_function_whose_name_is_code_is_in_no_script() -> None:
    function = te.create_prim_func([te.placeholder((4,), "float32", name="a")])
    for name in (f"x(): pass\n{RUN}\ndef y", "lambda", "a b"):
        with pytest.raises(LowerscopeError, match="cannot stand in a script"):
            list(script_files(tvm.IRModule({name: function})))
    assert [each.name for each in script_files(tvm.IRModule({"fine": function}))] == ["module.py"]


@given(found=st.lists(texts))
def test_names_of_files_are_apart_and_fit_everywhere(found: list[str]) -> None:
    made = file_names((*found, "..", "CON", "con.x", "../x", "a" * 400, "A" * 400, "B", "b"))
    assert len({each.casefold() for each in made.values()}) == len(made)
    for name in made.values():
        assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,130}", name)
        assert name.partition(".")[0].casefold() not in ("con", "nul")
