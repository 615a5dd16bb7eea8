"""What a torch function does with its operands: which it writes, which results are views, which it makes from nothing.

`kind_of(func)` answers once per function: PASS (leave everything alone), MOVE (all operands are only read, they may be copied to
another chip), or a callable `kind(scope, func, args, kwargs)` for the rest. The source is torch's own schemas; the names below are
what schemas do not say. A function that is unknown is left alone: then torch speaks, and nothing that it writes is lost.
"""

import inspect
import types

import torch
from torch.utils._device import _device_constructors

Tensor = torch.Tensor

PASS = object()
MOVE = object()

known = {}

# Functions that read a tensor's facts, or move it by themselves, or hand out what shares its memory.
_LEAVE = frozenset(
    """__array__ __array_wrap__ __bool__ __complex__ __deepcopy__ __dlpack__ __dlpack_device__ __float__ __format__ __index__ __int__
    __len__ __long__ __nonzero__ __reduce_ex__ __repr__ __setstate__ _clear_non_serializable_cached_data _is_view __get__ __set__
    __delete__ grad align_as align_tensors align_to apply_ atleast_1d atleast_2d atleast_3d autocast backward bfloat16 bool broadcast_tensors
    byte can_cast cdouble cfloat char chalf const_data_ptr copy_ cpu cuda data_ptr dim_order double fl_device float half
    has_names int ipu is_shared item long meshgrid module_load mtia ndimension nelement new new_empty new_empty_strided new_full
    new_ones new_tensor new_zeros numpy promote_types record_stream refine_names register_hook
    register_post_accumulate_grad_hook rename rename_ resize resize_as result_type set_ share_memory_ short storage storage_type
    sym_float sym_int _sym_sqrt dlpack_device sym_ite sym_max sym_min sym_not sym_sum _sym_int to_device tolist type type_as unsafe_chunk unsafe_split
    unsafe_split_with_sizes untyped_storage xpu __iter__ _local_scalar_dense is_same_size _has_compatible_shallow_copy_type""".split()
)
# Read-only functions that have no schema of their own name.
_READ = frozenset(
    """__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __div__ __rdiv__ __truediv__ __rtruediv__ __floordiv__ __rfloordiv__ __mod__
    __rmod__ __pow__ __rpow__ __matmul__ __rmatmul__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __and__ __rand__ __or__ __ror__ __xor__
    __rxor__ __lshift__ __rlshift__ __rshift__ __rrshift__ __invert__ __neg__ __abs__ __reversed__ __contains__ dsmm hsmm hspmm saddmm spmm sspaddmm lu
    unique svd_lowrank pca_lowrank lobpcg unravel_index""".split()
)
_LIKE = frozenset("empty_like full_like ones_like rand_like randint_like randn_like zeros_like".split())
# Modules of Python functions that only read, unless a flag or an entry below says otherwise.
_READING_MODULES = ("torch.nn.functional", "torch.functional", "torch._lowrank", "torch._lobpcg")


def kind_of(func):
    kind = known.get(func)
    if kind is None:
        kind = known[func] = _find_kind(func)
    return kind


def _find_kind(func):
    if func in _special():
        return _special()[func]
    if isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return _kind_by_schemas(_schemas_of_operator(func))
    name = getattr(func, "__name__", "")
    if func in _device_constructors():
        return make_here
    if name in _LEAVE:
        return PASS
    if name in _LIKE:
        return _make_like
    if name in _READ:
        return MOVE
    if isinstance(func, types.FunctionType):
        return _kind_of_python_function(func, name)
    if name.startswith("__i") and name.endswith("__"):  # __iadd__ and its like
        return Writes((0,))
    return _kind_by_schemas(torch._C._jit_get_schemas_for_operator("aten::" + name))


def _kind_of_python_function(func, name):
    module = getattr(func, "__module__", "")
    if name.endswith("_") and not name.endswith("__"):  # relu_, and all of torch.nn.init
        return Writes((0,))
    schemas = torch._C._jit_get_schemas_for_operator("aten::" + name)
    if module == "torch.nn.functional":                 # its unfold is im2col, not the view of that name
        schemas = []
    if schemas and module not in _READING_MODULES:
        return _kind_by_schemas(schemas)
    if any(_gives_view(schema) for schema in schemas):
        return PASS
    if module not in _READING_MODULES:
        return PASS
    parameters = list(inspect.signature(func).parameters)
    if "inplace" in parameters:
        return WritesWhen((0,), parameters.index("inplace"), "inplace")
    if "out" in parameters:
        return WritesWhen((parameters.index("out"),), parameters.index("out"), "out")
    return MOVE


def _schemas_of_operator(operator):
    if isinstance(operator, torch._ops.OpOverload):
        return [operator._schema]
    return [getattr(operator, name)._schema for name in operator.overloads()]


def _is_tensor(type_):
    return "Tensor" in str(type_)


def _gives_view(schema):
    return any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns)


def _kind_by_schemas(schemas):
    if not schemas:
        return PASS
    positions, names, read = set(), set(), 0
    for schema in schemas:
        tensors = [(i, a) for i, a in enumerate(schema.arguments) if _is_tensor(a.type)]
        read = max(read, len(tensors))
        for i, argument in tensors:
            if argument.alias_info is not None and argument.alias_info.is_write:
                names.add(argument.name)
                if not argument.kwarg_only:
                    positions.add(i)
    if positions:
        return Writes(tuple(sorted(positions)), tuple(sorted(names)))
    if any(_gives_view(schema) for schema in schemas):
        return PASS
    if read < 2 and not any(_is_tensor(r.type) for schema in schemas for r in schema.returns):
        return PASS                                      # size(), is_contiguous(), ...
    return MOVE if names <= {"out"} else Writes((), tuple(sorted(names)))


# -- what moves -----------------------------------------------------------------------------------------------------------------
class Carrier:
    """Copies operands to one chip, each once; remembers which copy came from which tensor."""

    def __init__(self, where, move):
        self.where, self.index, self.move = where, where.index, move
        self.pairs = {}

    def __call__(self, value):
        if isinstance(value, Tensor):
            at = value.get_device()
            if at == self.index or at < 0 or value.device.type != "fl_device":
                return value                             # the CPU's tensors stay: some operands belong there
            pair = self.pairs.get(id(value))
            if pair is None:
                pair = self.pairs[id(value)] = (value, self.move(value, self.where))
            return pair[1]
        if isinstance(value, (list, tuple)):
            carried = [self(item) for item in value]
            if all(a is b for a, b in zip(carried, value)):
                return value
            return carried if isinstance(value, list) else tuple(carried)
        return value

    def original(self, result):
        """A function that hands back its operand hands back the caller's."""
        for given, carried in self.pairs.values():
            if carried is result:
                return given
        return result


def run_here(scope, func, args, kwargs):
    """MOVE, the long way: at least one operand is elsewhere, or there are keyword arguments."""
    if kwargs.get("out") is not None:
        return _OUT(scope, func, args, kwargs)
    carry = Carrier(scope.device, scope.move)
    args = [carry(a) for a in args]
    kwargs = {k: carry(v) for k, v in kwargs.items()}
    return carry.original(func(*args, **kwargs))


def _einsum(scope, func, args, kwargs):
    """Of one operand it is a view (a transpose, a diagonal), which a copy cannot be; of several it is a product."""
    operands = [a for a in (*args, *kwargs.values()) if not isinstance(a, str)]
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = operands[0]
    return func(*args, **kwargs) if len(operands) == 1 else run_here(scope, func, args, kwargs)


def _chips_of(value, found):
    if isinstance(value, Tensor):
        found.add(value.device)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _chips_of(item, found)


class Writes:
    """Some operands are written: the work is done where those are, the others come to them."""

    def __init__(self, positions, names=()):
        self.positions, self.names = frozenset(positions), frozenset(names)

    def __call__(self, scope, func, args, kwargs):
        written = set()
        for position in self.positions:
            if position < len(args):
                _chips_of(args[position], written)
        for name in self.names:
            _chips_of(kwargs.get(name), written)
        if not written and not self.positions:           # max(x, dim) may write by name, and need not
            return run_here(scope, func, args, kwargs)
        if len(written) != 1:
            return func(*args, **kwargs)
        where = written.pop()
        if where.type != "fl_device":
            return func(*args, **kwargs)
        carry = Carrier(where, scope.move)
        args = [a if i in self.positions else carry(a) for i, a in enumerate(args)]
        kwargs = {k: v if k in self.names else carry(v) for k, v in kwargs.items()}
        return func(*args, **kwargs)


_OUT = Writes((), ("out",))


class WritesWhen(Writes):
    """Writes when a flag, by position or name, is set."""

    def __init__(self, positions, flag, flag_name, default=None):
        super().__init__(positions, (flag_name,) if flag_name == "out" else ())
        self.flag, self.flag_name, self.default = flag, flag_name, default

    def is_set(self, args, kwargs):
        value = args[self.flag] if self.flag < len(args) else kwargs.get(self.flag_name, self.default)
        return value is not None and value is not False

    def __call__(self, scope, func, args, kwargs):
        return super().__call__(scope, func, args, kwargs) if self.is_set(args, kwargs) else run_here(scope, func, args, kwargs)


class UpdatesStatistics(WritesWhen):
    """Batch and instance norm write their running statistics, which no schema says. They are a few numbers and the input is not:
    copies of them go to the scope's chip, and what became of them comes back."""

    def __init__(self, positions, flag, flag_name, default=None):
        super().__init__((), flag, flag_name, default)
        self.statistics = positions

    def __call__(self, scope, func, args, kwargs):
        if not self.is_set(args, kwargs):
            return run_here(scope, func, args, kwargs)
        args, kwargs, back = list(args), dict(kwargs), []
        for place, key in zip(self.statistics, ("running_mean", "running_var")):
            holder, at = (args, place) if place < len(args) else (kwargs, key)
            given = holder[at] if holder is args else holder.get(at)
            if isinstance(given, Tensor) and given.device.type == "fl_device" and given.device != scope.device:
                holder[at] = scope.move(given.detach(), scope.device)
                back.append((given, holder[at]))
        result = run_here(scope, func, args, kwargs)
        with torch.no_grad():
            for given, changed in back:
                given.copy_(changed)
        return result


def make_here(scope, func, args, kwargs):
    """Factories without a device make their tensor on the scope's chip, as under torch.device. What names a place otherwise
    (out=, a CPU generator, pinned memory) keeps it."""
    if kwargs.get("device") is None and kwargs.get("out") is None and not kwargs.get("pin_memory"):
        generator = kwargs.get("generator")
        if generator is None or generator.device.type == "fl_device":
            kwargs = {**kwargs, "device": scope.device}
    return func(*args, **kwargs)


def _make_like(scope, func, args, kwargs):
    """zeros_like and its like need only the operand's facts: nothing is moved."""
    like = args[0] if args else kwargs.get("input")
    if kwargs.get("device") is None and isinstance(like, Tensor) and like.device.type == "fl_device":
        kwargs = {**kwargs, "device": scope.device}
    return func(*args, **kwargs)


def _copies(key):
    """Whether an index is a gather, whose result is new memory; slices, numbers and 0-dim integers make views."""
    if isinstance(key, Tensor):
        return key.dim() > 0 or key.dtype == torch.bool
    return isinstance(key, tuple) and any(_copies(part) for part in key)


def _get_item(scope, func, args, kwargs):
    if len(args) == 2 and _copies(args[1]):
        return run_here(scope, func, args, kwargs)
    return func(*args, **kwargs)


_specials = {}


def _special():
    if not _specials:
        from torch.nn import functional as F

        _specials.update({
            Tensor.__getitem__: _get_item,
            Tensor.__setitem__: Writes((0,)),
            F.batch_norm: UpdatesStatistics((1, 2), 5, "training"),
            F.instance_norm: UpdatesStatistics((1, 2), 5, "use_input_stats", True),
            torch.batch_norm: UpdatesStatistics((3, 4), 5, "training"),
            torch.instance_norm: UpdatesStatistics((3, 4), 5, "use_input_stats"),
            torch.native_batch_norm: UpdatesStatistics((3, 4), 5, "training"),
            torch._C._VariableFunctions.batch_norm: UpdatesStatistics((3, 4), 5, "training"),
            torch.einsum: _einsum,
            F.embedding: WritesWhen((1,), 3, "max_norm"),
            F.embedding_bag: WritesWhen((1,), 3, "max_norm"),
        })  # fmt: skip
    return _specials
