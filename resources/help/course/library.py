"""Functions for the virtual machine to find by name: torch works on TVM's own memory."""

import torch
import tvm


@tvm.register_global_func("env.linear", override=True)
def env_linear(x, w, b, out) -> None:
    x, w, b, out = (torch.from_dlpack(each) for each in (x, w, b, out))
    torch.mm(x, w.T, out=out)
    torch.add(out, b, out=out)


@tvm.register_global_func("env.relu", override=True)
def env_relu(x, out) -> None:
    torch.clamp(torch.from_dlpack(x), min=0, out=torch.from_dlpack(out))
