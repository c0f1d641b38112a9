#!/usr/bin/env python3
"""The shipped recording, replayed without root and tracefs through the same three processes."""
import os
import pathlib

import harness

RECORDING = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "demo.tfr"


class Replay(harness.TestCase):
    def replay(self, *words):
        """By nobody in particular where the test is root, by its own user otherwise."""
        for name in ("tracefan", "tracefan-reader", "tracefan-router"):
            harness.staged(self.folder, name)
        recording = pathlib.Path(self.folder, RECORDING.name)
        recording.write_bytes(RECORDING.read_bytes())
        user = harness.as_user(harness.USER_A) if os.geteuid() == 0 else {}
        result = harness.run([f"{self.folder}/tracefan", "replay", recording, "-o", "json", *words],
                             env={"XDG_RUNTIME_DIR": self.folder}, **user)
        self.check_ended(result)
        return result

    def test_every_event_is_there(self):
        result = self.replay()
        executed = [e["args"]["filename"] for e in result.of("sched:sched_process_exec")]
        self.assertEqual(executed, ["/bin/sh"] + 3 * ["/bin/cat", "/bin/ls", "/bin/uname", "/bin/sleep"])
        self.assertEqual([e["comm"] for e in result.of("syscalls:sys_enter_openat")], 3 * ["cat", "ls"])
        self.check_balance(result)
        self.check_no_loss(result)
        self.check_order(result.events)

    def test_what_is_asked_for(self):
        result = self.replay("-e", "tracepoint:sched:sched_process_exec", "-f", 'comm == "ls"')
        self.assertEqual({e["args"]["filename"] for e in result.events}, {"/bin/ls"})
        self.assertEqual(len(result.events), 3)

    def test_twice_the_same(self):
        first, second = self.replay(), self.replay()
        for event in (*first.events, *second.events):
            event.pop("id")
        self.assertEqual(first.events, second.events)


if __name__ == "__main__":
    harness.main()
