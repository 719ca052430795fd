"""Two dataflow blocks with a side effect between them, which no pass may move or leave out."""

import numpy as np
from tvm.script import ir as I
from tvm.script import relax as R


@I.ir_module
class TwoBlocks:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(
        (2, 4), "float32"
    ):
        with R.dataflow():
            lv0 = R.matmul(x, w)
            gv0 = R.nn.relu(lv0)
            R.output(gv0)

        printed: R.Tuple = R.print(gv0, format="after the first block: {}")

        with R.dataflow():
            lv1 = R.add(gv0, gv0)
            out = R.nn.relu(lv1)
            R.output(out)
        return out


def reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return 2 * np.maximum(x @ w, 0)
