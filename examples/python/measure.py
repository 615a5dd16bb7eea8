"""What both demo models share: run on the CPU and on the chip, compare, count routes, time both interleaved."""

import statistics
import sys
import time


def compare(name, on_cpu, to_device, on_device, rounds):
    """Runs both sides; returns facts. `result` among them is the chip's answer, moved to the CPU.

    Times are per call in seconds, medians of `rounds` interleaved rounds; moving the input and reading the result are part of
    the chip's time.
    """
    import torch
    import torch_fl

    def timed(work):
        started = time.perf_counter()
        result = work()
        return time.perf_counter() - started, result

    def chip():
        return on_device(to_device()).to("cpu")

    print(f"{name}: first run on the CPU and on the chip ...", flush=True)
    _, expected = timed(on_cpu)
    torch_fl.reset()
    first, result = timed(chip)
    routes = torch_fl.get_route_report()["routes"]
    fallbacks = torch_fl.get_fallback_report()

    cpu_times, chip_times = [], []
    for done in range(rounds):
        cpu_times.append(timed(on_cpu)[0])
        chip_times.append(timed(chip)[0])
        if sys.stdout.isatty():
            print(f"\r  timing round {done + 1} of {rounds}", end="", flush=True)
    print(f"\r  timed {rounds} interleaved rounds", flush=True)
    cpu, device = statistics.median(cpu_times), statistics.median(chip_times)
    return {
        "name": name,
        "device": str(torch_fl.devices()[torch_fl.current_device()]),
        "threads": torch.get_num_threads(),
        "largest_difference": float((result - expected).abs().max()),
        "largest_value": float(expected.abs().max()),
        "routes": routes,
        "fallbacks": fallbacks["ops"],
        "seconds_first": first,
        "seconds_cpu": cpu,
        "seconds_device": device,
        "ratio": device / cpu,
        "result": result,
    }


def print_facts(facts: dict) -> None:
    """The table a person reads."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=facts["name"], title_justify="left", show_header=False, box=None, pad_edge=False)
    routes = ", ".join(f"{count} {route}" for route, count in facts["routes"].items())
    table.add_row("device", facts["device"])
    table.add_row("largest difference from the CPU", f"{facts['largest_difference']:.2e} (values up to {facts['largest_value']:.3g})")
    table.add_row("calls of one forward", routes)
    table.add_row("time per batch", f"{facts['seconds_device'] * 1e3:.1f} ms on the chip, {facts['seconds_cpu'] * 1e3:.1f} ms "
                                    f"on PyTorch's CPU: ratio {facts['ratio']:.2f} (medians, interleaved, {facts['threads']} threads)")
    table.add_row("first run on the chip", f"{facts['seconds_first'] * 1e3:.0f} ms")
    Console(highlight=False, width=None if sys.stdout.isatty() else 120).print(table)
