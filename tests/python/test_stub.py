# SPDX-License-Identifier: Apache-2.0
"""The stub says what the module has, and the docstrings say the same."""

import ast
import builtins
import doctest
import pathlib
import re

import pytest
import spyre_alloc

HERE = pathlib.Path(spyre_alloc.__file__).parent
STUB = ast.parse((HERE / "__init__.pyi").read_text())
CLASSES = {
    node.name: node
    for node in STUB.body
    if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
}


def functions(node, properties):
    """The class's functions, or its properties, by name."""
    return {
        item.name: item
        for item in node.body
        if isinstance(item, ast.FunctionDef)
        and bool(item.decorator_list) == properties
        and (properties or item.name == "__init__" or not item.name.startswith("__"))
    }


def parameters(function):
    """Names and defaults, without self; a default of `...` is one that the stub leaves open."""
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.literal_eval(default) for default in function.args.defaults]
    pairs = list(zip(names[len(names) - len(defaults) :], defaults))
    pairs = [(name, None) for name in names[: len(names) - len(defaults)]] + pairs
    return [pair for pair in pairs if pair[0] != "self"]


def documented_call(text):
    """The call that a docstring begins with, as a function."""
    call = " ".join(text.split("\n\n")[0].split())
    call, _, result = call.partition(" -> ")
    (function,) = ast.parse(f"def {call}: pass").body
    return function, result


CALLS = [
    (class_name, name, function)
    for class_name, node in CLASSES.items()
    for name, function in functions(node, properties=False).items()
]
PROPERTIES = [
    (class_name, name)
    for class_name, node in CLASSES.items()
    for name in functions(node, properties=True)
]


def docstring(class_name, name):
    kind = getattr(spyre_alloc, class_name)
    return kind.__doc__ if name == "__init__" else getattr(kind, name).__doc__


def test_the_package_is_shipped_with_its_types():
    assert (HERE / "py.typed").is_file()
    assert (HERE / "__init__.pyi").is_file()


def test_both_have_the_same_names():
    assert set(CLASSES) | {"__version__"} == set(spyre_alloc.__all__)
    for name in spyre_alloc.__all__:
        assert hasattr(spyre_alloc, name)


@pytest.mark.parametrize("name", CLASSES)
def test_both_have_the_same_members(name):
    kind = getattr(spyre_alloc, name)
    members = {
        member: value for member, value in vars(kind).items() if not member.startswith("_")
    }
    properties = {member for member, value in members.items() if isinstance(value, property)}
    stub_calls = set(functions(CLASSES[name], properties=False)) - {"__init__"}
    if issubclass(kind, BaseException):
        annotated = {item.target.id for item in CLASSES[name].body if isinstance(item, ast.AnnAssign)}
        assert annotated == set(members)
        return
    assert set(functions(CLASSES[name], properties=True)) == properties
    assert stub_calls == set(members) - properties


@pytest.mark.parametrize("name", CLASSES)
def test_both_have_the_same_bases(name):
    bases = [base.id for base in CLASSES[name].bases]
    for base in bases:
        found = getattr(spyre_alloc, base, None) or getattr(builtins, base)
        assert issubclass(getattr(spyre_alloc, name), found)


@pytest.mark.parametrize("class_name, name, function", CALLS)
def test_the_first_line_shows_the_call_as_the_stub_has_it(class_name, name, function):
    documented, result = documented_call(docstring(class_name, name))
    assert documented.name == (class_name if name == "__init__" else name)
    shown, stub = parameters(documented), parameters(function)
    assert [name for name, _ in shown] == [name for name, _ in stub]
    for (_, default), (_, in_stub) in zip(shown, stub):
        assert in_stub is ... or default == in_stub
    if name != "__init__":
        assert result


@pytest.mark.parametrize("class_name, name, function", CALLS)
def test_every_parameter_has_its_paragraph(class_name, name, function):
    text = docstring(class_name, name)
    if not parameters(function) or "are those of" in text:
        return
    section = re.search(r"^Parameters\n-{10}\n(.*?)(?=^\w[^\n]*\n-{4,}$|\Z)", text, re.S | re.M)
    assert section, text
    named = []
    for line in section.group(1).splitlines():
        if match := re.match(r"^(\w[\w, ]*) : \S", line) or re.match(r"^(\w+)$", line):
            named += match.group(1).split(", ")
    assert named == [name for name, _ in parameters(function)]


@pytest.mark.parametrize("class_name, name", PROPERTIES)
def test_every_property_tells_its_type_and_meaning(class_name, name):
    assert re.match(r"\w[\w ]*: \S", docstring(class_name, name) or ""), docstring(class_name, name)


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_says_what_it_is(name):
    assert len(getattr(spyre_alloc, name).__doc__.strip()) > 30


def test_what_raises_says_so():
    for name in ("__init__", "allocate", "check_invariants"):
        assert "Raises\n------\n" in docstring("SpyreAllocator", name)
    assert "Raises\n------\n" in docstring("Buffer", "free")


def test_no_signature_of_cpp_is_shown():
    for class_name, name, _ in CALLS:
        assert "boost" not in docstring(class_name, name)
        assert "C++ signature" not in docstring(class_name, name)


def test_the_example_of_the_package_runs():
    assert doctest.testmod(spyre_alloc).failed == 0
