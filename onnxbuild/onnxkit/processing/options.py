"""The operations of `preprocess` and `postprocess`, as recipes write them, and the types of values between them."""

from dataclasses import dataclass, fields
from typing import Any, Literal

from onnxbuild.core.params import option


@dataclass(frozen=True, slots=True)
class TextOptions:
    """Strings, (batch,)."""

    name: str = option("text", help="what the input is called in the pipeline")


@dataclass(frozen=True, slots=True)
class TokenizeOptions:
    """Ids of a WordPiece tokenizer, (batch, length), with the mask and types that belong to them."""

    file: str = option(
        help="tokenizer.json, or a vocab.txt of BERT's; relative to the recipe, or `package:NAME/PATH`"
    )
    corpus: str = option(
        help="text in UTF-8, one string a line: on these the ids must equal those of `tokenizers`"
    )
    max_length: int = option(512, help="most ids of a text, special ones included", minimum=3)
    padding: Literal["longest", "max_length"] = option(
        "longest", help="how long rows are: as the longest of the batch, or all max_length"
    )
    lowercase: bool = option(
        True,
        help="of a vocab.txt: lowercase text and strip accents; a tokenizer.json says so itself",
    )
    ids: str = option("input_ids", help="the model's input that takes the ids")
    mask: str | None = option(
        None,
        help="the one that takes 1 for tokens and 0 for padding; default: attention_mask, if it is there",
    )
    type_ids: str | None = option(
        None, help="the one that takes 0 for each; default: token_type_ids, if it is there"
    )


OF = "the value that it takes; left out: the result before it, or the model's only output"
TO = "what its result is called"


@dataclass(frozen=True, slots=True)
class _RawInputOptions:
    """A raw input, and the model's that is made of it."""

    feeds: str | None = option(
        None, help="the model's input that is made of it; left out where it has only one"
    )
    name: str | None = option(
        None, help="what the input is called in the pipeline; default: as in the model"
    )


@dataclass(frozen=True, slots=True)
class ImageOptions(_RawInputOptions):
    """Pixels as uint8 in NHWC, all images of a batch of one size."""

    channels: int = option(3, help="values of a pixel", minimum=1)
    min_size: int = option(1, help="least height and width, in pixels", minimum=1)
    max_size: int = option(1024, help="greatest height and width that is declared", minimum=1)
    example_size: int = option(224, help="height and width that load.py tries", minimum=1)


@dataclass(frozen=True, slots=True)
class AudioOptions(_RawInputOptions):
    """Samples as float32, (batch, samples)."""

    min_size: int = option(1024, help="fewest samples", minimum=1)
    max_size: int = option(480_000, help="most samples that are declared", minimum=1)
    example_size: int = option(16_000, help="samples that load.py tries", minimum=1)


@dataclass(frozen=True, slots=True)
class LogMelOptions:
    """Logarithm of a mel spectrogram, (batch, mels, frames), as torchaudio computes it."""

    sample_rate: int = option(16_000, help="samples a second", minimum=1)
    n_fft: int = option(400, help="samples of a window, of Hann", minimum=2)
    hop: int = option(160, help="samples from one window to the next", minimum=1)
    mels: int = option(80, help="bands", minimum=1)
    low: float = option(0.0, help="least frequency, in Hz", minimum=0)
    high: float | None = option(None, help="greatest, in Hz; default: half the rate", minimum=1)
    scale: Literal["htk", "slaney"] = option(
        "htk", help="`htk`: torchaudio's default; `slaney`: librosa's, bands of equal area"
    )
    center: bool = option(True, help="reflect half a window at both ends")
    log: Literal["ln", "log10"] = option("ln", help="the logarithm")
    floor: float = option(1e-10, help="least power before the logarithm", minimum=0)


_ANTIALIAS = (
    "widen the filter where images shrink, as PIL does; needs opset 18; `false`: as OpenCV does"
)
_FIRST = (
    "with `antialias`, the axis that comes first: what leaves the `smaller` image, as Pillow 13 does, "
    "or the `width`, as Pillow up to 12 did"
)


@dataclass(frozen=True, slots=True)
class ResizeOptions:
    """Resize images as PIL does."""

    size: tuple[int, ...] | None = option(None, help="[height, width]", minimum=1)
    shortest: int | None = option(
        None, help="length of the shorter side; the other one follows, rounded down", minimum=1
    )
    method: Literal["bilinear", "bicubic"] = option("bilinear", help="the filter")
    antialias: bool = option(True, help=_ANTIALIAS)
    first: Literal["smaller", "width"] = option("smaller", help=_FIRST)


@dataclass(frozen=True, slots=True)
class LetterboxOptions:
    """Resize images to fit into a frame and fill what is left, as YOLO's loaders do."""

    size: tuple[int, ...] = option(help="[height, width]", minimum=1)
    fill: int = option(114, help="value of the frame", minimum=0, maximum=255)
    method: Literal["bilinear", "bicubic"] = option("bilinear", help="the filter")
    antialias: bool = option(True, help=_ANTIALIAS)
    first: Literal["smaller", "width"] = option("smaller", help=_FIRST)


@dataclass(frozen=True, slots=True)
class CenterCropOptions:
    """Cut out the middle; smaller images are filled with zeros, as torchvision does."""

    size: tuple[int, ...] = option(help="[height, width]", minimum=1)


@dataclass(frozen=True, slots=True)
class RescaleOptions:
    """Multiply, as float32."""

    factor: float = option(1 / 255, help="what values are multiplied by")


@dataclass(frozen=True, slots=True)
class NormalizeOptions:
    """Subtract a mean and divide by a deviation, for each channel."""

    mean: tuple[float, ...] = option(help="one for all channels, or one for each")
    std: tuple[float, ...] = option(help="one for all channels, or one for each")


@dataclass(frozen=True, slots=True)
class ToNchwOptions:
    """Put channels before height and width."""


@dataclass(frozen=True, slots=True)
class CastOptions:
    """Convert to another dtype."""

    dtype: Literal["float32", "float16", "int64", "int32", "uint8"] = option(help="the dtype")


@dataclass(frozen=True, slots=True)
class CustomPreprocessOptions:
    """A graph of your own: one input, one output."""

    callable: str = option(help="FILE.py:CALLABLE that returns an onnx.ModelProto")


@dataclass(frozen=True)
class PreprocessOperation:
    """One operation on the way from a raw input to the model's."""

    image: ImageOptions | None = option(None, help="a raw input begins: an image of any size")
    audio: AudioOptions | None = option(None, help="a raw input begins: samples of sound")
    text: TextOptions | None = option(None, help="a raw input begins: strings")
    tokenize: TokenizeOptions | None = option(None, help="ids, mask and types of text")
    log_mel: LogMelOptions | None = option(None, help="a spectrogram of sound")
    resize: ResizeOptions | None = option(None, help="to an exact size, or by the shorter side")
    letterbox: LetterboxOptions | None = option(None, help="to fit into a frame")
    center_crop: CenterCropOptions | None = option(None, help="the middle")
    rescale: RescaleOptions | None = option(None, help="from 0 to 255 to 0 to 1, say")
    normalize: NormalizeOptions | None = option(None, help="by mean and deviation")
    to_nchw: ToNchwOptions | None = option(None, help="channels first")
    cast: CastOptions | None = option(None, help="another dtype")
    model: CustomPreprocessOptions | None = option(None, help="a graph of your own")


@dataclass(frozen=True, slots=True)
class SoftmaxOptions:
    """Probabilities of scores, along the last axis."""

    of: str | None = option(None, help=OF)
    to: str = option("probabilities", help=TO)


@dataclass(frozen=True, slots=True)
class SigmoidOptions:
    """A probability of each score."""

    of: str | None = option(None, help=OF)
    to: str = option("probabilities", help=TO)


@dataclass(frozen=True, slots=True)
class ArgmaxOptions:
    """Place of the greatest value along the last axis."""

    of: str | None = option(None, help=OF)
    to: str = option("class_id", help=TO)


@dataclass(frozen=True, slots=True)
class TopKOptions:
    """The greatest values along the last axis, and their places; the greatest first."""

    k: int = option(help="how many", minimum=1)
    of: str | None = option(None, help=OF)
    to: str = option("class_id", help="what the places are called")
    scores: str = option("scores", help="what the values are called")


@dataclass(frozen=True, slots=True)
class ThresholdOptions:
    """Whether each value is at least as great as a bound."""

    min: float = option(help="the bound")
    of: str | None = option(None, help=OF)
    to: str = option("is_above", help=TO)


@dataclass(frozen=True, slots=True)
class LabelsOptions:
    """Strings for places: the lines of a text file."""

    file: str = option(help="text in UTF-8, one label a line, relative to the recipe")
    of: str | None = option(None, help=OF)
    to: str = option("label", help=TO)


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """One vector for a sequence of them."""

    mode: Literal["mean", "cls"] = option("mean", help="the mean of all, or the first")
    mask: str | None = option(
        None, help="`mean`: the input that is 1 for vectors that count and 0 for others"
    )
    of: str | None = option(None, help=OF)
    to: str = option("embedding", help=TO)


@dataclass(frozen=True, slots=True)
class L2NormalizeOptions:
    """Vectors of length 1, along the last axis."""

    of: str | None = option(None, help=OF)
    to: str = option("embedding", help=TO)


@dataclass(frozen=True, slots=True)
class NmsOptions:
    """The best of overlapping boxes: rows of (image, class, box)."""

    boxes: str = option(help="boxes, (batch, boxes, 4)")
    scores: str = option(help="scores, (batch, classes, boxes)")
    iou: float = option(0.5, help="greatest overlap of two boxes", minimum=0, maximum=1)
    min_score: float = option(0.25, help="least score")
    most: int = option(100, help="most boxes of a class in an image", minimum=1)
    form: Literal["corners", "center"] = option(
        "corners", help="`corners`: x1 y1 x2 y2; `center`: x y width height"
    )
    to: str = option("selected", help=TO)


@dataclass(frozen=True, slots=True)
class CustomPostprocessOptions:
    """A graph of your own: one input, one output."""

    callable: str = option(help="FILE.py:CALLABLE that returns an onnx.ModelProto")
    of: str | None = option(None, help=OF)
    to: str = option("result", help=TO)


@dataclass(frozen=True)
class PostprocessOperation:
    """One operation on an output of the model."""

    softmax: SoftmaxOptions | None = option(None, help="probabilities that add up to 1")
    sigmoid: SigmoidOptions | None = option(None, help="probabilities, each by itself")
    argmax: ArgmaxOptions | None = option(None, help="the class with the greatest score")
    top_k: TopKOptions | None = option(None, help="the classes with the greatest scores")
    threshold: ThresholdOptions | None = option(None, help="at least so great, or not")
    labels: LabelsOptions | None = option(None, help="strings for classes")
    pool: PoolOptions | None = option(None, help="an embedding of token vectors")
    l2_normalize: L2NormalizeOptions | None = option(None, help="vectors of length 1")
    nms: NmsOptions | None = option(None, help="non-maximum suppression of boxes")
    model: CustomPostprocessOptions | None = option(None, help="a graph of your own")


Operation = PreprocessOperation | PostprocessOperation


def asked_of(operation: Operation) -> dict[str, Any]:
    """Return what one item of a list asks for: operation -> its options; one, if it is sound."""
    found = {each.name: getattr(operation, each.name) for each in fields(operation)}
    return {name: options for name, options in found.items() if options is not None}


Layout = Literal["", "NHWC", "NCHW"]
PREPROCESS, POSTPROCESS = "preprocess", "postprocess"


class ProcessingError(ValueError):
    """An operation that can't be where it is.

    Attributes:
        what: One sentence.
        fix: Something to type.
        section: PREPROCESS or POSTPROCESS.
        position: Of the operation in its list; None for the list itself.
    """

    def __init__(
        self, what: str, fix: str = "", section: str = "", position: int | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.section = section
        self.position = position


@dataclass(frozen=True, slots=True)
class ValueType:
    """A value.

    Attributes:
        dtype: As numpy spells it; empty where it is not known.
        shape: Sizes, symbols, or None for a size that is not known; None where the rank is not known.
        layout: Of images; empty for what is none.
        classes: How many classes its integers count; None where that is not known, or they count none.
        least: Least height and width of images, where one is known.
    """

    dtype: str = ""
    shape: tuple[int | str | None, ...] | None = None
    layout: Layout = ""
    classes: int | None = None
    least: int = 1

    @property
    def is_float(self) -> bool:
        """Whether it holds floats, as far as is known."""
        return not self.dtype or "float" in self.dtype

    def __str__(self) -> str:
        layout = f" {self.layout}" if self.layout else ""
        sizes = "" if self.shape is None else f" {_sizes(self.shape)}"
        return f"{self.dtype or 'of unknown dtype'}{layout}{sizes}"


def _sizes(shape: tuple[int | str | None, ...]) -> str:
    return f"[{', '.join('?' if each is None else str(each) for each in shape)}]"
