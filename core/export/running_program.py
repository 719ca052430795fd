"""Generated code that builds and runs a module, and compares it with its reference."""

from __future__ import annotations

import inspect
from pathlib import Path

import msgspec
import tvm

from lowerscope.core.cancellations import with_cancellations
from lowerscope.core.comparing.tolerances import Tolerance
from lowerscope.core.execution.building import without_kills
from lowerscope.core.export.report import source_name
from lowerscope.core.export.source_program import digest_of
from lowerscope.core.python_text import quoted
from lowerscope.core.recipe import Recipe
from lowerscope.core.stages import Stages

NAMES = (
    "TOLERANCES",
    "RANDOM",
    "to_tvm",
    "leaves",
    "virtual_machine",
    "without_kills",
    "with_cancellations",
    "check",
    "expected_of",
    "main",
)
"""Names that the program defines."""

_RUNTIME = '''\
def to_tvm(tensor):
    """Copy a tensor to TVM."""
    made = tvm.runtime.empty(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
    if tensor.numel():
        torch.utils.dlpack.from_dlpack(made).copy_(tensor.detach())
    return made


def leaves(value):
    """The tensors and numbers of a nest, in order."""
    if isinstance(value, torch.Tensor):
        yield value.clone()
    elif isinstance(value, tvm.runtime.Tensor):
        yield torch.utils.dlpack.from_dlpack(value).clone()
    elif isinstance(value, (bool, int, float)):
        yield torch.tensor(value)
    elif isinstance(value, np.ndarray | np.generic):
        yield torch.from_numpy(np.array(value))
    elif isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from leaves(getattr(value, each.name))
    elif value is not None:
        for each in value:
            yield from leaves(each)


def virtual_machine(executable):
    """A virtual machine on the CPU."""
    code = executable.mod.imports
    if len(code) == 1 and code[0].kind == "c" and not code[0].inspect_source().strip(" ;\\n"):
        # There is nothing to compile: every function is outside of the module.
        return relax.VirtualMachine(executable.mod, tvm.cpu())
    return relax.VirtualMachine(executable, tvm.cpu())


def check(name, actual, expected):
    """Assert that two tensors are equal, within the tolerance of their dtype.

    Return the largest difference; None where no element is finite on both sides, or there is none.
    """
    assert actual.shape == expected.shape, f"{name}: {actual.shape}, not {expected.shape}"
    assert actual.dtype == expected.dtype, f"{name}: {actual.dtype}, not {expected.dtype}"
    rtol, atol = TOLERANCES.get(str(actual.dtype).removeprefix("torch."), (0, 0))
    wide = torch.complex128 if actual.is_complex() else torch.float64
    exact = not (actual.is_complex() or actual.is_floating_point())
    ours, theirs = (each if exact else each.to(wide) for each in (actual, expected))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=rtol, atol=atol, err_msg=name)
    ours, theirs = (each.to(wide).numpy() for each in (actual, expected))
    finite = np.isfinite(ours) & np.isfinite(theirs)
    if not finite.all():
        print(f"{name}: {np.sum(~finite)} of {finite.size} elements are not finite on both sides")
    return float(np.abs(ours[finite] - theirs[finite]).max()) if finite.any() else None
'''


def running_program(
    stages: Stages, recipe: Recipe, *, library: bool, more: tuple[Path, ...]
) -> str:
    """Return the program with ``main``, which runs everything.

    Parameters
    ----------
    library
        Whether the program has functions to register.
    more
        Files that register some.
    """
    compiled, embedded = _to_compile("module", stages.completed)
    expected, more_embedded = _expected(stages)
    embedded |= more_embedded
    lines = ["def main():", '    """Do all of it."""']
    if recipe.threads:
        lines += [
            f"    torch.set_num_threads({recipe.threads})",
            f'    tvm.get_global_func("runtime.config_threadpool")(1, {recipe.threads})',
        ]
    lines += [
        "    source = open_source()",
        "    model = open_model(source)",
        "    inputs = make_inputs(source, model)",
        "    expected = expected_of(model, inputs, source)",
        "    lowered = lower(model)",
        "    parameters = parameters_of(model, inputs)",
        "    module = transform(lowered, {n: to_tvm(each) for n, each in parameters.items()})",
        f"    executable = tvm.compile({compiled}, TARGET)",
    ]
    lines += [f'    load_file(Path({str(path)!r}), "{digest_of(path)}")' for path in more]
    if library:
        lines += [
            "    for name, function in LIBRARY.items():",
            "        tvm.register_global_func(name, function, override=True)",
        ]
    values = "inputs" if stages.lowered is None else "[*inputs, *parameters.values()]"
    lines += [
        f"    values = {values}",
        '    before = [each.name for each in lowered["main"].params]',
        '    after = [each.name for each in module["main"].params]',
        "    if after != before:",
        "        known = dict(zip(before, values, strict=True))",
        "        values = [known[name] for name in after]",
        '    run = virtual_machine(executable)["main"]',
        "    actual = list(leaves(run(*(to_tvm(each) for each in values))))",
        "    assert len(actual) == len(expected)",
    ]
    random = () if stages.lowered is None else stages.lowered.random
    drawn = {place: ", ".join(names) for place, names in enumerate(random) if names}
    lines += [
        "    largest, unsure = None, []",
        "    for place, (ours, theirs) in enumerate(zip(actual, expected)):",
    ]
    if drawn:
        lines += [
            "        if place in RANDOM:",
            '            print(f"output {place} is random: {RANDOM[place]}")',
            "            continue",
        ]
    title, side = source_name(recipe), side_of(stages)
    if side == "NumPy":
        lines += [
            "        if theirs.dtype == torch.float64 and ours.is_floating_point():",
            "            # NumPy computes with more digits than it was asked for.",
            "            theirs = theirs.to(ours.dtype)",
        ]
    lines += [
        '        found = check(f"output {place}", ours, theirs)',
        "        if found is not None:",
        "            largest = found if largest is None else max(largest, found)",
        "        elif ours.numel():",
        "            unsure.append(place)",
        "        else:",
        '            print(f"output {place} has no elements to compare")',
        "    if unsure:",
        "        places = ', '.join(map(str, unsure))",
        f"        unsaid = {quoted(f'{title}: inconclusive, nothing is finite in outputs')}",
        '        raise SystemExit(f"{unsaid} {places}")',
        "    if largest is None:",
        f"        print({quoted(f'{title}: there is nothing to compare with {side}')})",
        "    else:",
        f"        said = {quoted(f'{title} matches {side}: largest difference')}",
        "        print(said, f'{largest:.2g}')",
        "",
        "",
        'if __name__ == "__main__":',
        "    main()",
        "",
    ]
    constants = [f"TOLERANCES = {_tolerances(recipe)}", f"RANDOM = {drawn}" * bool(drawn)]
    text = "\n".join(filter(None, constants)) + "\n"
    return "\n\n".join([text, _RUNTIME, *embedded.values(), expected, "\n".join(lines)])


def _to_compile(name: str, module: tvm.IRModule) -> tuple[str, dict[str, str]]:
    """Return the expression of the compiled module, and the functions that it needs."""
    text, embedded = name, {}
    for change in (without_kills, with_cancellations):
        changed = change(module)
        if changed is not module:
            text, module = f"{change.__name__}({text})", changed
            embedded[change.__name__] = inspect.getsource(change)
    return text, embedded


def side_of(stages: Stages) -> str:
    """Return the name of the reference that the outputs are compared with."""
    if stages.loaded.model is not None:
        return "torch"
    return "NumPy" if stages.loaded.reference is not None else "the module before its steps"


def _tolerances(recipe: Recipe) -> str:
    chosen: dict[str, Tolerance] = msgspec.structs.asdict(recipe.tolerances)
    found = {dtype: (each.rtol, each.atol) for dtype, each in chosen.items()}
    parts = {"complex128": "float64", "complex64": "float32", "complex32": "float16"}
    found |= {dtype: found[part] for dtype, part in parts.items()}
    inside = "".join(f'\n    "{dtype}": {pair},' for dtype, pair in found.items())
    return f"{{{inside}\n}}"


def _expected(stages: Stages) -> tuple[str, dict[str, str]]:
    """Return ``expected_of``, and the functions that it needs."""
    loaded = stages.loaded
    lines = ["def expected_of(model, inputs, source):"]
    if loaded.model is not None:
        # Modules of exported programs contain tree specs that warn when they are copied.
        copied = "copy.deepcopy(model)" if loaded.exported is None else "open_model(source)"
        lines += [
            '    """What torch computes, from copies of the model and of its inputs."""',
            f"    model, inputs = {copied}, [each.clone() for each in inputs]",
            "    torch.manual_seed(SEED)",
            "    with torch.inference_mode():",
            "        return list(leaves(call_model(model, inputs, source)))",
            "",
        ]
        return "\n".join(lines), {}
    if loaded.reference is not None:
        lines += [
            '    """What NumPy computes, by the function reference of the file."""',
            "    reference = source.reference",
            "    if isinstance(reference, dict):",
            f"        reference = reference[{quoted(loaded.entry)}]",
            "    return list(leaves(reference(*(each.numpy() for each in inputs))))",
            "",
        ]
        return "\n".join(lines), {}
    compiled, embedded = _to_compile("lower(model)", stages.module)
    lines += [
        '    """What the module computes before its steps."""',
        f'    run = virtual_machine(tvm.compile({compiled}, "llvm"))["main"]',
        "    return list(leaves(run(*(to_tvm(each) for each in inputs))))",
        "",
    ]
    return "\n".join(lines), embedded
