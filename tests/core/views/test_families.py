"""Families of operators, for all the names that torch and TVM give them."""

import pytest

from lowerscope.core.model.graph import FAMILY_NAMES
from lowerscope.core.views.graph.boxes import family_of, weightiest

NAMES = {
    "dense": "Conv2d ConvTranspose1d Linear LSTM GRUCell aten::convolution addmm R.nn.conv2d",
    "attention": "MultiheadAttention scaled_dot_product_attention R.nn.attention",
    "activation": "ReLU GELU LogSoftmax relu_ _softmax R.nn.relu te_relu leaky_relu ReLU6 SiLU",
    "normalisation": "BatchNorm2d LayerNorm RMSNorm _native_batch_norm_legit_no_training "
    "group_norm",
    "pooling": "MaxPool2d AdaptiveAvgPool2d max_pool2d_with_indices R.nn.avg_pool2d",
    "elementwise": "add mul_ truediv R.multiply call_tir+divide1 masked_fill not_equal expm1",
    "reduction": "sum mean amax argmax R.sum cumsum logsumexp max",
    "shape": "Embedding Flatten reshape permute R.permute_dims cat getitem contiguous R.astype",
    "": "MyOperator call+helper R.call_py_func x",
}


@pytest.mark.parametrize("family", NAMES)
def test_an_operator_has_the_family_of_what_it_does(family: str) -> None:
    assert family in FAMILY_NAMES
    for name in NAMES[family].split():
        assert family_of(name.replace("+", " ")) == family, name


def test_the_weightiest_operator_stands_for_a_fused_function() -> None:
    assert family_of("call_tir fused_reshape1_dense2_add_relu") == "dense"
    assert family_of("call_tir fused_add_multiply1") == "elementwise"
    assert family_of("fused_softmax_layer_norm") == "normalisation"
    assert weightiest(["", "shape", "activation"]) == "activation"
    assert weightiest([]) == ""
