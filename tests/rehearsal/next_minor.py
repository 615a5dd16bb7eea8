#!/usr/bin/env python3
"""Writes the headers and sources of a made-up next minor: what changes when the ABI grows, and nothing else.

Usage: next_minor.py SOURCE_FOLDER OUT_FOLDER      OUT_FOLDER then goes before include/ and src/ in the search for headers.

The vendor ABI 1.1 gets a slot (memory_zero) and fields behind a struct that core gives (copy), one that the plugin gives
(device_info) and the host table; the op set 1 gets an attribute (add.ceiling); the application ABI gets fields behind a call and
an output struct. An anchor that is not there once is an error: the sources have moved on, and so must this table.
"""
import pathlib
import sys

# file: (text, what stands there in the next minor)
EDITS = {
    "include/flhal/base.h": [("#define FLHAL_VERSION_MINOR 1u", "#define FLHAL_VERSION_MINOR 2u")],
    "include/flhal/plugin.h": [
        ("#define FLHAL_PLUGIN_ABI_MINOR 0u", "#define FLHAL_PLUGIN_ABI_MINOR 1u"),
        ("} flhal_host_v1;", "  uint64_t host_flags;                     /* since 1.1 */\n} flhal_host_v1;"),
        ("} flhal_p_device_info_v1;", "  uint64_t cache_bytes;                    /* since 1.1 */\n} flhal_p_device_info_v1;"),
        ("} flhal_p_copy_v1; ", "  uint64_t hint;                           /* since 1.1 */\n} flhal_p_copy_v1; "),
        ("} flhal_plugin_table_v1;", "  /* 30: since 1.1, optional */\n"
         "  flhal_status (*memory_zero)(flhal_p_device*, flhal_p_stream*, const flhal_p_place*, uint64_t bytes);\n"
         "} flhal_plugin_table_v1;"),
    ],
    "include/flhal/device.h": [("} flhal_device_info;", "  uint64_t    cache_bytes;          // since 0.2\n} flhal_device_info;")],
    "include/flhal/op.h": [("} flhal_op_call;", "  uint64_t deadline_ns;                  // since 0.2\n} flhal_op_call;")],
    "include/flhal/ops.h": [
        ("#define FLHAL_OP_SET_MINOR 0u", "#define FLHAL_OP_SET_MINOR 1u\n#define FLHAL_ATTR_ADD_CEILING 0x04002u"),
    ],
    "src/core/slots.def": [
        ("event_signal, kSignal, (flhal_p_event* event, flhal_status status), (event, status))",
         "event_signal, kSignal, (flhal_p_event* event, flhal_status status), (event, status))\n"
         "FLHAL_SLOT(30, flhal_status, memory_zero, kOptional, (flhal_p_device* device, flhal_p_stream* stream, "
         "const flhal_p_place* place, uint64_t bytes), (device, stream, place, bytes))"),
    ],
    "src/dispatch/opset/opset.h": [("kOpSetMinor = 0;", "kOpSetMinor = 1;")],
    "src/dispatch/opset/pointwise.cc": [],   # filled in below
}


def main(source: str, target: str) -> None:
    root, out = pathlib.Path(source), pathlib.Path(target)
    rows = (root / "src/dispatch/opset/pointwise.cc").read_text()
    add = [line for line in rows.split("\n") if '(0x040, "add"' in line]
    if len(add) != 1 or not add[0].rstrip().endswith(","):
        sys.exit("next_minor.py: src/dispatch/opset/pointwise.cc has no one-line row of add; change this script with it")
    row = add[0].rstrip()
    EDITS["src/dispatch/opset/pointwise.cc"] = [(row, row[:-1] + '.number_attr("ceiling", 1e308).attr_since(1),')]
    for name, pairs in EDITS.items():
        text = (root / name).read_text()
        for old, new in pairs:
            if text.count(old) != 1:
                sys.exit(f"next_minor.py: {name} has \"{old}\" {text.count(old)} times; change this script with it")
            text = text.replace(old, new)
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:     # an unchanged file compiles nothing again
            path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
