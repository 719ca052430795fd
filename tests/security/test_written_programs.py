"""Data never becomes code in what is written: names and texts are what they are in programs too."""

from __future__ import annotations

import ast
import io
import keyword
import tokenize

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from lowerscope.core.files import python_text
from lowerscope.core.stages import Pipeline
from tests.security.hostile_names import it_ran, names, recipes
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
