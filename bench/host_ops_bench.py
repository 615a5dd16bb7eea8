"""bench/host_ops_bench.py: native operators of the host plugin against torch's CPU operators, in one process.

Calls the plugin's table directly (no libflhal, no adapter), so it measures the operators themselves; one ctypes call is
about as dear as one torch call from Python. Rounds alternate between the two sides; figures are medians and, because a
busy machine spoils medians, the fastest fifth.

    python bench/host_ops_bench.py build/release/flhal_plugins.d/libflhal_plugin_host.so [--threads N] [--rounds N] [--json FILE] [filter]
"""
import argparse
import ctypes as c
import json
import statistics
import time

import torch

F32, BF16, I64 = 0x12002, 0x11004, 0x14000
DTYPES = {torch.float32: F32, torch.bfloat16: BF16, torch.int64: I64}


class Tensor(c.Structure):
    _fields_ = [("address", c.c_uint64), ("memory", c.c_void_p), ("offset", c.c_uint64), ("extent", c.c_uint64),
                ("sizes", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("dtype", c.c_uint32),
                ("rank", c.c_uint16), ("layout", c.c_uint16), ("flags", c.c_uint32), ("reserved", c.c_uint32)]


class Value(c.Union):
    _fields_ = [("i", c.c_int64), ("f", c.c_double), ("p", c.c_void_p)]


class Attr(c.Structure):
    _fields_ = [("key", c.c_uint32), ("kind", c.c_uint16), ("flags", c.c_uint16), ("count", c.c_uint32),
                ("reserved", c.c_uint32), ("v", Value), ("imag", c.c_double)]


class Call(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("struct_type", c.c_uint32), ("next", c.c_void_p), ("op", c.c_uint32),
                ("op_version", c.c_uint32), ("name", c.c_char_p), ("tensors", c.POINTER(Tensor)), ("groups", c.c_void_p),
                ("attrs", c.POINTER(Attr)), ("tensor_stride", c.c_uint32), ("n_outputs", c.c_uint32),
                ("n_inputs", c.c_uint32), ("n_groups", c.c_uint32), ("attr_stride", c.c_uint32), ("n_attrs", c.c_uint32),
                ("compute_dtype", c.c_uint32), ("alias", c.c_uint32), ("flags", c.c_uint32), ("reserved", c.c_uint32)]


class PlanInfo(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("struct_type", c.c_uint32), ("next", c.c_void_p), ("depends_on", c.c_uint64),
                ("workspace_bytes", c.c_uint64), ("workspace_align", c.c_uint64), ("held_bytes", c.c_uint64),
                ("wanted_layouts", c.c_void_p), ("n_wanted", c.c_uint32), ("flags", c.c_uint32), ("estimate_ns", c.c_uint64),
                ("reason", c.c_char_p)]


class Place(c.Structure):
    _fields_ = [("memory", c.c_void_p), ("offset", c.c_uint64), ("host", c.c_void_p)]


class Host(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("struct_type", c.c_uint32), ("next", c.c_void_p), ("abi_minor", c.c_uint32),
                ("oldest", c.c_uint32), ("log", c.c_void_p), ("set_error", c.c_void_p), ("rest", c.c_void_p * 5)]


class Info(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("struct_type", c.c_uint32), ("next", c.c_void_p), ("abi_minor", c.c_uint32),
                ("oldest", c.c_uint32), ("id", c.c_char_p), ("version", c.c_char_p), ("build_id", c.c_char_p),
                ("vendor", c.c_char_p), ("flags", c.c_uint32), ("sanitizer", c.c_uint32), ("table", c.c_void_p),
                ("optional_table", c.c_void_p)]


class Init(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("struct_type", c.c_uint32), ("next", c.c_void_p), ("minor", c.c_uint32),
                ("flags", c.c_uint32)]


SET_ERROR = c.CFUNCTYPE(None, c.c_int32, c.c_int64, c.c_char_p)


class Plugin:
    def __init__(self, path):
        self.library = c.CDLL(path)
        self.on_error = SET_ERROR(lambda status, code, text: print("plugin:", text.decode()))
        self.host = Host(c.sizeof(Host), 1, None, 0, 0, None, c.cast(self.on_error, c.c_void_p))
        info = Info(c.sizeof(Info), 3)
        assert self.library.flhal_plugin_v1(c.byref(self.host), c.byref(info)) == 0
        slots = (c.c_void_p * 17).from_address(info.table + 16)
        optional = c.CFUNCTYPE(c.c_void_p, c.c_char_p, c.c_uint32)(info.optional_table)
        ops = (c.c_void_p * 3).from_address(optional(b"ops", 0) + 24)
        plugin, self.device = c.c_void_p(), c.c_void_p()
        init = Init(c.sizeof(Init), 2)
        pointer = c.c_void_p
        assert c.CFUNCTYPE(c.c_int32, pointer, pointer, pointer)(slots[0])(
            c.addressof(self.host), c.addressof(init), c.addressof(plugin)) == 0
        assert c.CFUNCTYPE(c.c_int32, pointer, c.c_uint32, pointer)(slots[4])(plugin, 0, c.addressof(self.device)) == 0
        self.create = c.CFUNCTYPE(c.c_int32, pointer, pointer, pointer, pointer)(ops[0])
        self.run = c.CFUNCTYPE(c.c_int32, pointer, pointer, pointer, pointer)(ops[1])

    def plan(self, op, name, outputs, inputs, attrs=()):
        """A function without arguments that runs the op, or None when the plugin declines."""
        operands = list(outputs) + list(inputs)
        tensors = (Tensor * len(operands))()
        keep = [tensors, operands]
        for t, view in zip(operands, tensors):
            if t is None:
                view.flags = 1
                continue
            sizes, strides = (c.c_int64 * t.dim())(*t.shape), (c.c_int64 * t.dim())(*t.stride())
            keep += [sizes, strides]
            view.address, view.sizes, view.strides = t.data_ptr(), sizes, strides
            view.dtype, view.rank = DTYPES[t.dtype], t.dim()
        list_of_attrs = (Attr * max(1, len(attrs)))()
        for a, (key, value) in zip(list_of_attrs, attrs):
            a.key = op << 8 | key
            if isinstance(value, tuple):
                array = (c.c_int64 * len(value))(*value)
                keep.append(array)
                a.kind, a.count, a.v.p = 4, len(value), c.addressof(array)
            elif isinstance(value, float):
                a.kind, a.v.f = 2, value
            else:
                a.kind, a.v.i = 1, value
        call = Call(c.sizeof(Call), 10, None, op, 1, name.encode(), tensors, None, list_of_attrs, c.sizeof(Tensor), len(outputs),
                    len(inputs), len(operands), c.sizeof(Attr), len(attrs), tensors[0].dtype or tensors[len(outputs)].dtype)
        info, plan = PlanInfo(c.sizeof(PlanInfo), 11), c.c_void_p()
        status = self.create(self.device, c.addressof(call), c.addressof(info), c.addressof(plan))
        if status != 0:
            self.reason = (info.reason or b"").decode()
            return None
        space = torch.empty(info.workspace_bytes + 64, dtype=torch.uint8)
        place = Place(None, 0, (space.data_ptr() + 63) // 64 * 64)
        keep += [list_of_attrs, call, space, place]
        run, call_at, place_at = self.run, c.addressof(call), c.addressof(place) if info.workspace_bytes else None

        def go():
            if run(plan, None, call_at, place_at) != 0:
                raise RuntimeError(name)
        go.keep = keep
        return go


def cases(p):
    """Rows: what, ours, torch's, the result to compare."""
    r = torch.randn

    def matmul(what, a, b, bias=None):
        out = torch.empty(torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), dtype=a.dtype)
        theirs = (lambda: torch.addmm(bias, a, b)) if bias is not None else (lambda: torch.matmul(a, b))
        return what, p.plan(0x200, "matmul", [out], [a, b, bias]), theirs, out

    for m, k, n in ((128, 384, 384), (128, 384, 1536), (128, 1536, 384)):
        yield matmul(f"linear {m}x{k}x{n}", r(m, k), r(n, k).t(), r(n))
        yield matmul(f"matmul {m}x{k}x{n}", r(m, k), r(k, n))
    q, k, v, s = (r(1, 128, 12, 32).permute(0, 2, 1, 3) for _ in range(3)), None, None, r(1, 12, 128, 128)
    q, k, v = q
    yield matmul("heads q @ k^T", q, k.transpose(-1, -2))
    yield matmul("heads s @ v", s, v)
    yield matmul("one row 1x384x384", r(1, 384), r(384, 384).t(), r(384))
    for n in (3, 8, 16, 32, 64, 256):
        yield matmul(f"matmul {n}x{n}x{n}", r(n, n), r(n, n))
    yield matmul("bf16 matmul 128x384x384", r(128, 384).bfloat16(), r(384, 384).bfloat16())

    x, y = r(1, 12, 128, 128), torch.empty(1, 12, 128, 128)
    yield "softmax 12x128x128", p.plan(0x400, "softmax", [y], [x]), lambda: torch.softmax(x, -1), y
    h, w, b, o = r(128, 384), r(384), r(384), torch.empty(128, 384)
    m, d = torch.empty(128, 1), torch.empty(128, 1)
    yield ("layer_norm 128x384", p.plan(0x410, "layer_norm", [o, m, d], [h, w, b], [(2, 1e-12)]),
           lambda: torch.native_layer_norm(h, [384], w, b, 1e-12)[0], o)
    for approximate in (0, 1):
        g, e = r(128, 1536), torch.empty(128, 1536)
        yield (f"gelu 128x1536 approximate={approximate}", p.plan(0x027, "gelu", [e], [g], [(1, approximate)] if approximate else []),
               lambda g=g, a=approximate: torch.nn.functional.gelu(g, approximate=("none", "tanh")[a]), e)

    def conv(what, x, w, bias=None, stride=1, padding=0, groups=1):
        theirs = lambda: torch.conv2d(x, w, bias, stride, padding, 1, groups)
        out = torch.empty_like(theirs())
        attrs = [(1, (stride, stride)), (2, (padding, padding)), (4, groups)]
        return what, p.plan(0x300, "conv2d", [out], [x, w, bias], attrs), theirs, out

    yield conv("conv 7x7 3>64 224", r(1, 3, 224, 224), r(64, 3, 7, 7), None, 2, 3)
    yield conv("conv 3x3 64>64 56", r(1, 64, 56, 56), r(64, 64, 3, 3), None, 1, 1)
    yield conv("conv 1x1 64>256 56", r(1, 64, 56, 56), r(256, 64, 1, 1))
    yield conv("conv 3x3 512>512 7", r(1, 512, 7, 7), r(512, 512, 3, 3), None, 1, 1)
    yield conv("conv 3x3 64>64 56 channels_last", r(1, 64, 56, 56).to(memory_format=torch.channels_last),
               r(64, 64, 3, 3), None, 1, 1)
    bx, bo = r(1, 64, 112, 112), torch.empty(1, 64, 112, 112)
    bw, bb, bm, bv = r(64), r(64), r(64), torch.rand(64) + 0.5
    yield ("batch_norm 64x112x112 inference", p.plan(0x420, "batch_norm", [bo, None, None], [bx, bw, bb, bm, bv]),
           lambda: torch.nn.functional.batch_norm(bx, bm, bv, bw, bb), bo)
    to, ts, td = torch.empty(1, 64, 112, 112), torch.empty(64), torch.empty(64)
    yield ("batch_norm 64x112x112 training", p.plan(0x420, "batch_norm", [to, ts, td], [bx, bw, bb, None, None], [(1, 1)]),
           lambda: torch.nn.functional.batch_norm(bx, None, None, bw, bb, True), to)
    po, pi = torch.empty(1, 64, 56, 56), torch.empty(1, 64, 56, 56, dtype=torch.int64)
    yield ("max_pool2d 64x112x112", p.plan(0x310, "max_pool2d", [po, pi], [bx],
                                           [(1, (3, 3)), (2, (2, 2)), (3, (1, 1))]),
           lambda: torch.nn.functional.max_pool2d(bx, 3, 2, 1, return_indices=True)[0], po)


def measure(ours, theirs, rounds):
    times = ([], [])
    for f in (ours, theirs):
        for _ in range(3):
            f()
    start = time.perf_counter()
    for _ in range(rounds):
        for f, kept in zip((ours, theirs), times):
            t = time.perf_counter()
            f()
            kept.append(time.perf_counter() - t)
        if time.perf_counter() - start > 6:
            break
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("plugin")
    parser.add_argument("filter", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=0, help="of torch and of the plugin; default: torch's own choice")
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--json")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    plugin, results = Plugin(args.plugin), []
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}")
    print(f"{'':36} {'host us':>10} {'torch us':>10} {'ratio':>6}   {'fastest fifth':>14}")
    with torch.no_grad():
        for what, ours, theirs, result in cases(plugin):
            if args.filter not in what:
                continue
            if ours is None:
                print(f"{what:36} declined: {plugin.reason}")
                continue
            ours()
            worst = ((result.double() - theirs().double()).abs() / (1 + theirs().double().abs())).max().item()
            assert worst < (0.05 if result.dtype == torch.bfloat16 else 1e-3), (what, worst)
            a, b = measure(ours, theirs, args.rounds)
            fifth = [sorted(t)[len(t) // 5] * 1e6 for t in (a, b)]
            middle = [statistics.median(t) * 1e6 for t in (a, b)]
            results.append({"what": what, "host_us": middle[0], "torch_us": middle[1], "ratio": middle[0] / middle[1],
                            "fifth_ratio": fifth[0] / fifth[1]})
            print(f"{what:36} {middle[0]:10.1f} {middle[1]:10.1f} {middle[0] / middle[1]:6.2f}   "
                  f"{fifth[0]:6.1f} {fifth[1]:6.1f} {fifth[0] / fifth[1]:6.2f}")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"threads": torch.get_num_threads(), "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
