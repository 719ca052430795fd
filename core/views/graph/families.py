"""Operator families, by the name of a module class, function, method, ATen or Relax operator."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from lowerscope.core.model.graph import FAMILY_NAMES

_OPERATORS: Mapping[str, str] = {
    "attention": """
        attention attentionbias attentionvarlen flexattention multiheadattention
        scaleddotproductattention scaleddotproductefficientattention
        scaleddotproductflashattention scaleddotproductflashattentionforcpu
    """,
    "dense": """
        addbmm addmm addmv addr baddbmm batchmatmul bilinear bmm chaindot conv convolution convtbc
        convtranspose deformconv deformableconv dense dot einsum gru grucell inner ger gemm linear
        linearrelu lstm lstmcell matmul matvec mkldnnrnn mm multidot mv outer rnn rnncell
        rnnrelu rnntanh tensordot vdot
    """,
    "pooling": """
        adaptiveavgpool adaptivemaxpool avgpool fractionalmaxpool globalavgpool globalmaxpool
        interpolate lppool maxpool maxunpool pool resize upsample upsamplebicubic upsamplebilinear
        upsamplenearest
    """,
    "normalisation": """
        batchnorm crossmaplrn groupnorm instancenorm layernorm linalgnorm linalgvectornorm
        localresponsenorm lrn norm normalize rmsnorm spectralnorm syncbatchnorm weightnorm
    """,
    "activation": """
        alphadropout celu dropout elu featuredropout gelu gelutanh glu hardshrink hardsigmoid
        hardswish hardtanh leakyrelu logsigmoid logsoftmax mish prelu relu rrelu selu sigmoid silu
        softmax softmin softplus softshrink softsign swish swiglu tanh tanhshrink threshold
    """,
    "reduction": """
        all amax amin aminmax any argmax argmin argsort bincount bucketize count countnonzero
        crossentropy crossentropywithlogits cumprod cumsum histc kthvalue logcumsumexp logsumexp max
        mean median min mode mseloss multinomial nanmean nansum nllloss nonzero prod searchsorted
        sort std stdmean sum topk trace unique uniqueconsecutive var varmean variance
    """,
    "elementwise": """
        abs acos acosh add addcdiv addcmul and angle asin asinh atan atanh bitwise bitwiseand
        bitwisenot bitwiseor bitwisexor ceil clamp clampmax clampmin clip cos cosh deg divide div
        eq equal erf erfc erfinv exp expm expm1 fill floor floordiv floordivide floormod fmax fmin
        fmod frac ge greater greaterequal gt heaviside hypot isfinite isinf isnan invert ldexp le
        lerp less lessequal log logaddexp logical logicaland logicalnot logicalor logicalxor logit
        lshift leftshift lt maskedfill maximum minimum mod mul multiply ne neg negate negative not
        notequal or pow power rad reciprocal remainder rightshift round rshift rsqrt rsub sgn sign
        sin sinh sqrt square sub subtract tan truediv trunc truncmod where xor
    """,
    "shape": """
        affinegrid allocstorage alloctensor arange asstrided astype atleast broadcast broadcastto
        bool cast cat channelshuffle chunk clone collapsesumlike concat concatenate constantpad
        contiguous copy detach diag diagonal dstack dtype dynamicstridedslice embedding
        embeddingbag empty emptylike expand expanddims eye flatten flip float fold full fulllike
        gather gatherelements gathernd getattr getitem gridsample half hint hstack identity index
        indexadd indexcopy indexput indexselect indextensor int layouttransform linspace long
        lifttotensor maskedselect matchcast meshgrid moveaxis movedim narrow newempty newfull
        newones newzeros numel onehot ones oneslike pad permute permutedims pixelshuffle
        pixelunshuffle rand randint randn ravel reflectionpad repeat repeatinterleave replicationpad
        reshape reverse roll rot rsplit scatter scatteradd scatterelements scatternd select setitem
        shape shapeof size slice sliceassign slicescatter split splitwithsizes squeeze stack
        stopliftparams strided stridedslice swapaxes symsize take takealongdim tensor
        tensortoshape tensorsplit tile to tocopy toview transpose tril triu tup tuple type unbind
        unfold unflatten unsafesplit unsafeview unsqueeze view viewas vstack zeropad zeros
        zeroslike
    """,
}
"""Operators of each family, the weightiest family first: a fused function has that of the first.

Names are in lower case, without underscores and without trailing numbers such as those in
``Conv2d`` and ``dense1``.
"""

_FAMILY_OF = {
    operator: family for family, operators in _OPERATORS.items() for operator in operators.split()
}
_RANK = {family: rank for rank, family in enumerate(_OPERATORS)}
_LONGEST = 6
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+d?")
_NAME = re.compile(r"\w+")


@lru_cache(maxsize=4096)
def family_of(operator: str) -> str:
    """Return the family of an operator, or of the weightiest one in the name of a fused function.

    ``Conv2d``, ``aten::_native_batch_norm_legit``, ``R.nn.relu`` and ``call_tir fused_dense1_add2``
    are all found; the family of a name without a known operator is ``""``.
    """
    return weightiest(family for name in _NAME.findall(operator[:200]) for family in _in(name))


def _in(name: str) -> Iterator[str]:
    """Yield the families of the operators in a name, each as long as possible."""
    words = [word.lower() for word in _WORD.findall(name) if not word[0].isdigit()]
    start = 0
    while start < len(words):
        for end in range(min(len(words), start + _LONGEST), start, -1):
            family = _FAMILY_OF.get("".join(words[start:end]))
            if family is not None:
                yield family
                start = end
                break
        else:
            start += 1


def weightiest(families: Iterable[str]) -> str:
    """Return the family that stands for several, such as those in a module."""
    return min((each for each in families if each in _RANK), key=_RANK.__getitem__, default="")


assert _RANK.keys() <= FAMILY_NAMES.keys()
