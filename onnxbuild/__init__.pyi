# The names of __init__.py with their types: there they are imported when they are used.

from onnxbuild.building.api import Request as Request
from onnxbuild.building.api import build as build
from onnxbuild.building.api import load_recipe as load_recipe
from onnxbuild.building.api import plan as plan
from onnxbuild.core.errors import BuildError as BuildError
from onnxbuild.core.errors import RecipeErrors as RecipeErrors
from onnxbuild.core.errors import UsageError as UsageError
from onnxbuild.python.build import Build as Build
from onnxbuild.python.failure import FailedBuildError as FailedBuildError
from onnxbuild.python.metrics import Metrics as Metrics
from onnxbuild.python.run import run as run
from onnxbuild.python.variant import BuiltVariant as BuiltVariant
from onnxbuild.release.release import ReleaseRequest as ReleaseRequest
from onnxbuild.release.release import make_release as make_release
from onnxbuild.reproduction.reproduce import reproduce as reproduce

__version__: str
