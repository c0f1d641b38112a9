"""The works: what every contender has to do, and the rows of the table that come of it.

A contender is a function that does the work once and returns its figures. The contenders of a work take turns."""
import contextlib
import os
import pathlib
import subprocess
import tempfile
import time

import peers
import process
from peers import EVENT as KERNEL_EVENT
from process import Child, Disturbed, Failed, Producer, built
from report import Row, percentile
from session import EVENT, NUMBERED, RING, Consumer, check_lost, session

# An event of the work takes 20 bytes in the kernel's ring, one with a number 28.
EVENT_ROOM = 24
NUMBERED_ROOM = 32


class Scale:
    """How much of the usual amount."""

    def __init__(self, scale, seconds):
        self.scale, self.rest_seconds = scale, seconds

    def of(self, count, least=1):
        return max(least, int(count * self.scale))


def ring_room(events, processes):
    """Of each CPU's buffer, so that what its producer makes fits."""
    return max(1 << 20, events // processes * EVENT_ROOM)


def of_pids(pids):
    """A filter."""
    return " || ".join(f"common_pid == {pid}" for pid in pids)


def pinned_producer(events, numbers=0):
    count = min(2, len(os.sched_getaffinity(0)))
    return Producer(events // count, count, pin=True, numbers=numbers)


# ---- events that lie in the kernel's ring ----

def ring_tracefan(events, *reader_words, connections=((EVENT,),)):
    """(figures of a run in which the reader was halted until all events were there)."""
    producer = pinned_producer(events)
    probes = [[probe.replace("OURS", of_pids(producer.pids)) for probe in one] for one in connections]
    events = producer.calls * producer.processes
    with session("--buffer-size", str(ring_room(events, producer.processes)), *reader_words) as running:
        running.mute("text" not in reader_words)
        consumer = Consumer(running, events, probes)
        with running.halted():
            running.mute(False)
            producer.run()
            before, begin = running.spent(), time.monotonic_ns()
        got, lost, when, cpu = consumer.result()
        after = running.spent()
        consumer.close()
    check_lost(lost)
    if when < begin:
        raise Disturbed("all events were somebody else's, before the work began")
    reader, router = after[0] - before[0], after[1] - before[1]
    return {"rate": events / (when - begin) * 1e9, "reader": reader / events, "router": router / events,
            "consumer": cpu / got, "cpu": (reader + router + cpu) / events}


@contextlib.contextmanager
def filled(events):
    """A peer's instance with the events in its ring, and how many they are."""
    producer = pinned_producer(events)
    events = producer.calls * producer.processes
    with peers.instance(ring_room(events, producer.processes)) as made:
        producer.run()
        # The end of the events is the end of the file.
        made.write("tracing_on", 0)
        yield made, events


def ring_drain(events):
    with filled(events) as (made, count):
        child = Child([built("bench_drain"), *made.raw_files()])
        cpu = int(child.line().split()[2])
        child.wait()
    return {"cpu": cpu / count}


def ring_cat(events):
    with filled(events) as (made, count):
        begin = time.monotonic_ns()
        child = Child(["cat", made.folder / "trace_pipe"], stdout=subprocess.DEVNULL).wait()
        return {"rate": count / (time.monotonic_ns() - begin) * 1e9, "cpu": child.cpu / count}


def work_ring(scale):
    events = scale.of(3000000, 2000)
    work = "ring"
    contenders = {
        "tracefan": lambda: ring_tracefan(events),
        "tracefan text": lambda: ring_tracefan(events, "--source", "text"),
        "read loop": lambda: ring_drain(events),
        "cat": lambda: ring_cat(events),
    }
    rows = [
        Row(work, "events/s / cat trace_pipe's", ("tracefan", "rate"), ("cat", "rate"), "most", 15, "/s"),
        Row(work, "CPU per event / a read loop's", ("tracefan", "cpu"), ("read loop", "cpu"), "least", 6, "ns"),
        Row(work, "text source: events/s / cat's", ("tracefan text", "rate"), ("cat", "rate"), "most", 0.9, "/s"),
        Row(work, "CPU per event of the reader", ("tracefan", "reader"), unit="ns"),
        Row(work, "CPU per event of the router", ("tracefan", "router"), unit="ns"),
        Row(work, "CPU per event of the consumer", ("tracefan", "consumer"), unit="ns"),
    ]
    return work, contenders, rows


# ---- live ----

def live_none(calls):
    return {"call": Producer(calls).run()}


def live_tracefan(calls):
    producer = Producer(calls)
    with session() as running:
        consumer = Consumer(running, producer.calls * producer.processes)
        call = producer.run()
        _, lost, _, _ = consumer.result()
        cpu = consumer.close() + running.stop()
    return {"call": call, "lost": lost, "cpu": cpu / calls / producer.processes}


def live_peer(calls, start):
    producer = Producer(calls)
    tool = start()
    call = producer.run()
    return {"call": call, "cpu": tool.end() / calls / producer.processes}


def live_file(calls, start):
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return live_peer(calls, lambda: start(os.path.join(folder, "out")))


def live_cat(calls):
    with peers.instance() as made:
        return live_peer(calls, lambda: peers.Cat(made))


def work_live(scale):
    calls = scale.of(1000000, 1000)
    work = "live"
    contenders = {
        "untraced": lambda: live_none(calls),
        "tracefan": lambda: live_tracefan(calls),
        "trace-cmd": lambda: live_file(calls, peers.trace_cmd),
        "perf": lambda: live_file(calls, peers.perf),
        "cat": lambda: live_cat(calls),
        "bpftrace": lambda: live_peer(calls, peers.bpftrace),
    }
    rows = [
        Row(work, "a call / under trace-cmd record", ("tracefan", "call"), ("trace-cmd", "call"), "least", 1.15, "ns"),
        Row(work, "events lost", ("tracefan", "lost"), target=0),
        Row(work, "CPU / trace-cmd record's", ("tracefan", "cpu"), ("trace-cmd", "cpu"), "least", 0.5, "ns"),
        Row(work, "CPU / bpftrace printf's", ("tracefan", "cpu"), ("bpftrace", "cpu"), "least", 0.03, "ns"),
        Row(work, "CPU / perf record's", ("tracefan", "cpu"), ("perf", "cpu"), unit="ns"),
        Row(work, "CPU / cat trace_pipe's", ("tracefan", "cpu"), ("cat", "cpu"), unit="ns"),
        Row(work, "a call / untraced", ("tracefan", "call"), ("untraced", "call"), unit="ns"),
    ]
    return work, contenders, rows


# ---- many consumers of their own pids ----

# Calls: about as long as a scheduler that has more to run would let a process work.
TURN = 2000


def shares_tracefan(calls, processes, count):
    """`processes` producers always, two of which are at work at a time, for some ms; each of `count` consumers takes
    an equal part of them."""
    producer = Producer(calls, processes, turn=TURN)
    part = processes // count
    with session() as running:
        consumers = []
        for i in range(count):
            probe = f"{EVENT} if {of_pids(producer.pids[i * part:(i + 1) * part])}" if count > 1 else EVENT
            consumers.append(Consumer(running, calls * part, ((probe,),), ring=8 << 20 if count > 4 else 64 << 20))
        before = running.spent()
        producer.run()
        results = [consumer.result() for consumer in consumers]
        after = running.spent()
        for consumer in consumers:
            consumer.close()
    events = calls * processes
    return {"cpu": (sum(after) - sum(before) + sum(r[3] for r in results)) / events, "lost": sum(r[1] for r in results),
            "router": (after[1] - before[1]) / events}


def work_shares(scale):
    work, most = "consumers", 64
    calls = scale.of(2000000, 100 * most) // most
    contenders = {str(n): lambda n=n: shares_tracefan(calls, most, n) for n in (1, 4, 16, most)}
    rows = [Row(work, f"CPU per event of {n} / of 1", (str(n), "cpu"), ("1", "cpu"), "least", 1.5 if n == most else None, "ns")
            for n in (4, 16, most)]
    rows += [Row(work, f"CPU per event of the router, {n} / 1", (str(n), "router"), ("1", "router"), unit="ns")
             for n in (4, 16, most)]
    rows.append(Row(work, f"events lost by {most}", (str(most), "lost"), target=0))
    return work, contenders, rows


# ---- many consumers, each with a filter of its own ----

def filters_tracefan(events, filters, numbers):
    """Calls of `numbers` numbers in turn, from the kernel's ring, to a consumer for each of the filters."""
    producer = pinned_producer(events, numbers)
    events = producer.calls * producer.processes
    with session("--buffer-size", str(events // producer.processes * NUMBERED_ROOM + (1 << 20))) as running:
        consumer = Consumer(running, events, [(f"{NUMBERED} if {text}",) for text in filters],
                            ring=RING if numbers == 1 else max(1 << 18, RING // len(filters)), unseen=False)
        with running.halted():
            producer.run()
            before = running.spent()
        got, lost, _, _ = consumer.result()
        after = running.spent()
        consumer.close()
    check_lost(lost)
    if got != events:
        raise Disturbed(f"{got} events instead of {events}")
    return {"router": (after[1] - before[1]) / events}


def own_numbers(consumers, each=1):
    """For each consumer a filter for the next few of the numbers."""
    numbers = [Producer.NUMBER + i for i in range(consumers * each)]
    return [" || ".join(f"pid == {n}" for n in numbers[i:i + each]) for i in range(0, len(numbers), each)]


def tried(consumers):
    """One that accepts the first number, and others of which none accepts it and none can be looked up."""
    first, last = Producer.NUMBER, Producer.NUMBER + consumers + 100
    return [f"pid >= {first + i} && pid < {last}" for i in range(consumers)]


def work_filters(scale):
    """What an event costs by the number of filters, where one of them accepts it. In the rows with a target that is
    always the same consumer's; where events go to all consumers in turn, so many rings are written to and so many
    consumers woken."""
    events, some, many = scale.of(1000000, 4000), scale.of(64, 4), scale.of(1000, 8)
    work = "filters"
    contenders = {
        "one": lambda: filters_tracefan(events, own_numbers(1), 1),
        "some": lambda: filters_tracefan(events, own_numbers(some), 1),
        "many": lambda: filters_tracefan(events, own_numbers(many), 1),
        "some in turn": lambda: filters_tracefan(events, own_numbers(some), some),
        "many in turn": lambda: filters_tracefan(events, own_numbers(many), many),
        "four": lambda: filters_tracefan(events, own_numbers(many // 4, 4), many // 4 * 4),
        "tried": lambda: filters_tracefan(events // 10, tried(many), 1),
    }
    figures = {
        "some": (f"{some} consumers, a number each: CPU per event of the router / with one", 1.5),
        "many": (f"{many} consumers: the same", 2),
        "some in turn": (f"{some} consumers in turn: the same", None),
        "many in turn": (f"{many} consumers in turn: the same", None),
        "four": (f"{many // 4} consumers in turn, 4 numbers each: the same", None),
        "tried": (f"{many} filters without a value to look up: the same", None),
    }
    rows = [Row(work, figure, (name, "router"), ("one", "router"), "least", target, "ns")
            for name, (figure, target) in figures.items()]
    return work, contenders, rows


# ---- latency ----

def ages_of(values):
    values = list(values)
    if not values:
        raise Failed("no event came")
    return {"p50": percentile(values, 0.5) / 1000, "p99": percentile(values, 0.99) / 1000}


def latency_tracefan(events, period):
    producer = Producer(events, 1, period)
    with session() as running:
        consumer = Consumer(running, events, ages=True)
        producer.run()
        consumer.result()
        ages = consumer.ages(events)
        consumer.close()
    return ages_of(ages)


def latency_lines(events, period, start):
    """A peer that writes a line for each event, into a pipe."""
    producer = Producer(events, 1, period)
    reading, writing = os.pipe()
    lines = Child([built("bench_lines"), events], stdin=reading)
    os.close(reading)
    tool = start(writing)
    os.close(writing)
    producer.run()
    # With the last lines, should the tool keep them back.
    tool.end()
    ages = [int(line) for line in lines.rest()]
    lines.wait()
    return ages_of(ages)


def latency_cat(events, period):
    with peers.instance() as made:
        return latency_lines(events, period, lambda out: peers.Cat(made, out))


def latency_direct(events, period):
    """What no program can be better than by this file: it reads trace_pipe itself."""
    producer = Producer(events, 1, period)
    with peers.instance() as made, open(made.folder / "trace_pipe") as pipe:
        lines = Child([built("bench_lines"), events], stdin=pipe)
        producer.run()
        ages = [int(line) for line in lines.rest()]
        lines.wait()
    return ages_of(ages)


def latency_chain(events, period):
    """What no three processes in a row can be better than: bare ones that do nothing with it."""
    producer = Producer(events, 1, period)
    with peers.instance() as made:
        made.write("buffer_percent", 0)
        chain = Child([built("bench_chain"), events, *made.raw_files()])
        if chain.line() != "ready":
            raise chain.fail("did not begin")
        producer.run()
        ages = [int(line) for line in chain.rest()]
        chain.wait()
    return ages_of(ages)


def work_latency(scale):
    events, period = scale.of(2000, 50), 1000000
    work = "latency"
    contenders = {
        "tracefan": lambda: latency_tracefan(events, period),
        "cat": lambda: latency_cat(events, period),
        "read": lambda: latency_direct(events, period),
        "chain": lambda: latency_chain(events, period),
        "bpftrace": lambda: latency_lines(events, period, peers.bpftrace),
    }
    rows = [
        Row(work, "p50 / cat trace_pipe's", ("tracefan", "p50"), ("cat", "p50"), "least", 1.5, "us"),
        Row(work, "p99 / bpftrace printf's", ("tracefan", "p99"), ("bpftrace", "p99"), "least", 1.0, "us"),
        Row(work, "p99 / cat trace_pipe's", ("tracefan", "p99"), ("cat", "p99"), unit="us"),
        Row(work, "p50 / a read of trace_pipe", ("tracefan", "p50"), ("read", "p50"), unit="us"),
        Row(work, "p50 / three bare processes in a row", ("tracefan", "p50"), ("chain", "p50"), unit="us"),
        Row(work, "three bare processes' p50 / cat's", ("chain", "p50"), ("cat", "p50"), unit="us"),
    ]
    return work, contenders, rows


# ---- at rest ----

def rest_tracefan(seconds):
    with session() as running:
        consumer = Consumer(running, 1)
        running.mute()
        pids = [running.reader.pid, running.router.pid, consumer.child.pid]
        running.wait_alone(seconds)
        before = [process.switches(pid) for pid in pids]
        time.sleep(seconds)
        after = [process.switches(pid) for pid in pids]
        memory = [process.resident(pid) for pid in pids]
        consumer.child.end()
    return {"switches": sum(map(process.switched, before, after)), "resident": sum(m[0] for m in memory) / (1 << 20),
            "share": sum(m[1] for m in memory) / (1 << 20)}


def work_rest(scale):
    work = "rest"
    rows = [
        Row(work, f"wake-ups in {scale.rest_seconds:g} s", ("tracefan", "switches"), target=0),
        Row(work, "resident beyond the rings", ("tracefan", "resident"), target=16, unit="MiB"),
        Row(work, "the same, shared pages by share", ("tracefan", "share"), unit="MiB"),
    ]
    return work, {"tracefan": lambda: rest_tracefan(scale.rest_seconds)}, rows


# ---- text and JSON ----

def output_folder():
    """In memory where there is such a place: what a disk takes for a hundred MiB is nobody's merit."""
    memory = "/dev/shm"
    return tempfile.TemporaryDirectory(prefix="bench-", dir=memory if os.access(memory, os.W_OK) else None)


def output_tracefan(events, form):
    """tracefan trace from the kernel's ring to a file."""
    producer = pinned_producer(events)
    events = producer.calls * producer.processes
    with session("--buffer-size", str(ring_room(events, producer.processes))) as running, \
            output_folder() as folder:
        file = pathlib.Path(folder, "out")
        running.mute()
        command = Child([built("tracefan"), "trace", "--session", running.name, "-e", "e=" + EVENT, "-o", form,
                         "-n", events, "-w", file, "--ring", "256M"])
        running.wait_enabled(command)
        with running.halted():
            running.mute(False)
            producer.run()
            begin = time.monotonic_ns()
        command.wait()
        end = time.monotonic_ns()
        with open(file, "rb") as text:
            lines = sum(1 for line in text if line.rstrip().endswith(b" e") or b'"kind":"event"' in line)
    if lines < events:
        raise Failed(f"{lines} lines instead of {events}")
    return {"rate": events / (end - begin) * 1e9}


def output_trace_cmd(events):
    with output_folder() as folder:
        file, out = os.path.join(folder, "trace.dat"), os.path.join(folder, "out")
        producer = Producer(events // 2)
        tool = peers.trace_cmd(file)
        producer.run()
        tool.end()
        with open(out, "wb") as text:
            begin = time.monotonic_ns()
            Child(["trace-cmd", "report", "-i", file], stdout=text).wait()
            end = time.monotonic_ns()
        with open(out, "rb") as text:
            lines = sum(1 for line in text if b"sys_enter_getppid" in line)
    if not lines:
        raise Disturbed("trace-cmd recorded nothing")
    return {"rate": lines / (end - begin) * 1e9}


def work_output(scale):
    events = scale.of(600000, 2000)
    work = "output"
    contenders = {
        "text": lambda: output_tracefan(events, "text"),
        "json": lambda: output_tracefan(events, "json"),
        "trace-cmd": lambda: output_trace_cmd(events),
    }
    rows = [
        Row(work, "-o text: events/s / trace-cmd report's", ("text", "rate"), ("trace-cmd", "rate"), "most", 5, "/s"),
        Row(work, "-o json: events/s / trace-cmd report's", ("json", "rate"), ("trace-cmd", "rate"), "most", 3, "/s"),
    ]
    return work, contenders, rows


# ---- many probes, many consumers ----

def many_probes(events, count):
    """One probe whose events come, and others on code that nobody calls."""
    others = [f"p{i}=uprobe:{built('bench_producer')}:bench_sled+{4 * i}" for i in range(count - 1)]
    return ring_tracefan(events, connections=((EVENT, *others),))


def many_consumers(events, count):
    """One that takes all that the producers make, and others that wait for threads that don't exist."""
    connections = [(EVENT + " if OURS",)]
    connections += [(f"{EVENT} if common_pid == {1 << 30 | i}",) for i in range(count - 1)]
    return ring_tracefan(events, connections=connections)


def work_many(scale):
    events, count = scale.of(1000000, 2000), scale.of(1000, 10)
    work = "many"
    contenders = {
        "one": lambda: many_probes(events, 1),
        "probes": lambda: many_probes(events, count),
        "one filter": lambda: many_consumers(events, 1),
        "consumers": lambda: many_consumers(events, count),
    }
    rows = [
        Row(work, f"{count} probes: CPU per event of the router / with one", ("probes", "router"), ("one", "router"),
            "least", 1.2, "ns"),
        Row(work, f"{count} consumers, one matches: the same", ("consumers", "router"), ("one filter", "router"),
            "least", 1.2, "ns"),
    ]
    return work, contenders, rows


WORKS = [work_ring, work_live, work_shares, work_filters, work_latency, work_rest, work_output, work_many]
