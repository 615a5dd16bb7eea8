"""What both demo models share: run on the CPU and in several ways on chips, compare, count routes and moves, time all interleaved."""

import contextlib
import dataclasses
import statistics
import sys
import threading
import time
from collections.abc import Callable


@dataclasses.dataclass
class Way:
    """One way to run the model: its name, and a function that gives the result on the CPU."""

    name: str
    run: Callable


def chips_of(names):
    """The chips of a list of names with commas; without one the active chip."""
    import torch_fl

    if not names:
        return [torch_fl.current_device()]
    known = {chip.name: chip for chip in torch_fl.devices()}
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        raise SystemExit(f"there is no chip {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names.split(",")]


@contextlib.contextmanager
def progress(text):
    """Says what goes on, and how long already: a first run on a chip with a compiler builds its kernels, which can take a minute."""
    ended = threading.Event()
    started = time.monotonic()
    terminal = sys.stdout.isatty()

    def tick():
        import torch_fl

        while not ended.wait(1 if terminal else 15):
            calls = torch_fl.get_route_report()["calls"]
            line = f"  {text}: {time.monotonic() - started:.0f} s, {calls} calls so far"
            print(f"\r{line}" if terminal else line, end="" if terminal else "\n", flush=True)

    print(f"  {text} ...", end="" if terminal else "\n", flush=True)
    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()
        print((f"\r  {text}: done in " if terminal else "    done in ") + f"{time.monotonic() - started:.1f} s" + " " * 20 * terminal, flush=True)


def _timed(work):
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def _routes_by_chip(report):
    """{chip: {route: calls}} of a route report, without what did not happen."""
    found = {}
    for row in report["ops"]:
        calls = found.setdefault(row["device"], {})
        calls[row["route"]] = calls.get(row["route"], 0) + row["calls"]
    return found


def compare(name, on_cpu, ways, rounds):
    """Runs PyTorch's CPU and every way; returns facts. `result` of each way is its answer on the CPU.

    Times are per call in seconds, medians of `rounds` interleaved rounds; moving the input and reading the result are part of
    the chips' time.
    """
    import torch
    import torch_fl

    with progress(f"{name}: PyTorch's CPU"):
        _, expected = _timed(on_cpu)
    facts = {"name": name, "threads": torch.get_num_threads(), "policy": torch_fl.get_fallback_policy(),
             "largest_value": float(expected.abs().max()), "ways": []}
    for way in ways:
        torch_fl.reset()
        with progress(f"{name}: first run on {way.name}"):
            first, _ = _timed(way.run)
        torch_fl.reset()
        result = way.run()
        report, routes = torch_fl.get_fallback_report(), torch_fl.get_route_report()
        facts["ways"].append({
            "name": way.name,
            "largest_difference": float((result - expected).abs().max()),
            "calls": routes["calls"],
            "left_the_chip": routes["off_chip_calls"],
            "routes": _routes_by_chip(routes),
            "fallbacks": report["ops"],
            "moves": report["moves"],
            "bytes_moved": sum(row["bytes"] for row in report["moves"]),
            "seconds_first": first,
            "result": result,
        })  # fmt: skip

    times = [[] for _ in range(1 + len(ways))]
    works = [on_cpu, *(way.run for way in ways)]
    for done in range(rounds):
        for work, spent in zip(works, times):
            spent.append(_timed(work)[0])
        if sys.stdout.isatty():
            print(f"\r  timing round {done + 1} of {rounds}", end="", flush=True)
    print("\r" * sys.stdout.isatty() + f"  timed {rounds} interleaved rounds", flush=True)
    facts["seconds_cpu"] = statistics.median(times[0])
    for row, spent in zip(facts["ways"], times[1:]):
        row["seconds"] = statistics.median(spent)
        row["ratio"] = row["seconds"] / facts["seconds_cpu"]
    return facts


def results(facts):
    """Takes the answers out of the facts, which are for files: {name of the way: tensor}."""
    return {row["name"]: row.pop("result") for row in facts["ways"]}


def size(n):
    for unit in ("B", "KiB", "MiB"):
        if n < 1024 or unit == "MiB":
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def _route_text(row):
    return "\n".join(f"{chip}: " + ", ".join(f"{count} {route}" for route, count in sorted(calls.items(), key=lambda item: -item[1]))
                     for chip, calls in row["routes"].items())


def print_facts(facts: dict) -> None:
    """The table a person reads: one column per way, side by side."""
    from rich.console import Console
    from rich.table import Table

    ways = facts["ways"]
    table = Table(title=f"{facts['name']} (policy {facts['policy']}, {facts['threads']} threads)", title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for name in ("PyTorch's CPU", *(row["name"] for row in ways)):
        table.add_column(name)
    table.add_row("largest difference from the CPU", f"values up to {facts['largest_value']:.3g}", *(f"{row['largest_difference']:.1e}" for row in ways))
    table.add_row("calls that left the chip", "", *(f"{row['left_the_chip']} of {row['calls']}" for row in ways))
    table.add_row("routes", "", *(_route_text(row) for row in ways))
    table.add_row("moved between chips", "", *(f"{size(row['bytes_moved'])} in {sum(m['copies'] for m in row['moves'])} copies" for row in ways))
    table.add_row("time of one forward", f"{facts['seconds_cpu'] * 1e3:.1f} ms", *(f"{row['seconds'] * 1e3:.1f} ms" for row in ways))
    table.add_row("  / PyTorch's CPU, same run", "1", *(f"{row['ratio']:.2f}" for row in ways))
    table.add_row("first run", "", *(f"{row['seconds_first'] * 1e3:.0f} ms" for row in ways))
    Console(highlight=False, width=None if sys.stdout.isatty() else 140).print(table)


def check(facts: dict, at_most: float) -> None:
    """Ends the program when a way's answer is wrong."""
    for row in facts["ways"]:
        if not row["largest_difference"] <= at_most:
            raise SystemExit(f"{facts['name']} on {row['name']}: the answer differs from the CPU's by {row['largest_difference']:.3g}; "
                             f"at most {at_most:.3g} is right")
