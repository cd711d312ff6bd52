#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes copies of sources with faults in them, each behind a switch, for the explorer to find.

    mutate.py --list                  the files that have a mutated copy, from the project's root
    mutate.py --write ROOT OUTPUT     writes the copies, and mutant_table.inc

A fault replaces one exact piece of text, which must be there once: when the source changes, the
build says so, and the fault is written anew.
"""

import pathlib
import sys

HOLD = "strategies/hold_mutex_during_callback.cpp"
HOLD_HEADER = "strategies/include/flex/strategies/hold_mutex_during_callback.hpp"
RELEASE = "strategies/release_and_condvar.cpp"
ROOM = "src/waiting_room.cpp"
ROOM_HEADER = "include/flex/waiting_room.hpp"
MUTEX_HEADER = "include/flex/sync/mutex.hpp"
MUTEX = "src/sync/mutex.cpp"
BIASED_HEADER = "include/flex/sync/biased_mutex.hpp"
BIASED = "src/sync/biased_mutex.cpp"
PARKER = "src/sync/parker.cpp"
REQUEST = "src/request.cpp"
ENGINE = "src/engine.cpp"
CHAIN = "src/callback_chain.cpp"
MODEL = "tests/interleave/interpreter_model.cpp"

# Name, what is wrong, scenarios that may find it, and the pieces: (file, old text, new text). The
# word MUTANT in a new text is true where the fault is switched on.
MUTANTS = [
    ("signal_dropped", "who is handed memory is not woken",
     "release/freeDuringReclaim release/deferredFreeFeedsWaiter hold/burst2",
     [(ROOM, "    place.parker_.signal();\n  }\n}\n\nbool", "    if (!MUTANT) place.parker_.signal();\n  }\n}\n\nbool")]),
    ("notify_dropped", "a permit is given and the sleeper not notified",
     "release/freeDuringReclaim hold/burst2",
     [(PARKER, "  permit_ = true;\n  condition_.notifyAll();", "  permit_ = true;\n  if (!MUTANT) condition_.notifyAll();")]),
    ("permit_dropped", "who is about to sleep overlooks the permit it has",
     "release/freeDuringReclaim hold/burst2",
     [(PARKER, "if (!permit_ && !nudged_)", "if (MUTANT || (!permit_ && !nudged_))")]),
    ("next_not_woken", "who leaves as the first does not wake the next",
     "hold/burst3",
     [(ROOM, "  // What the first one could not use may be", "  if (MUTANT) return;\n  // What the first one could not use may be")]),
    ("nobody_takes_over", "the end of a reclaim wakes nobody",
     "release/throwing",
     [(RELEASE, "    strategy_.queue_.wakeAllBut(request_);", "    if (!MUTANT) strategy_.queue_.wakeAllBut(request_);")]),
    ("looks_only_once", "who sleeps after a reclaim never looks for garbage again",
     "release/garbageAfterTheReclaim",
     [(RELEASE, "covered && place.first() && timeToLookAgain()", "!MUTANT && covered && place.first() && timeToLookAgain()")]),
    ("generation_read_late", "the generation is read after a sleep, not before the search",
     "hold/burstInVain release/burstInVain",
     [(REQUEST, "  return WaitEnd::woken;", "  if (MUTANT) arrived_ = engine_.generation_;\n  return WaitEnd::woken;")]),
    ("covered_by_an_old_reclaim", "a reclaim that began before the request counts for it",
     "hold/lateGarbage",
     [(HOLD, "last_complete_ > request.arrived()", "(last_complete_ > request.arrived() || (MUTANT && last_complete_ != 0 && last_complete_ == request.arrived()))")]),
    ("gate_skipped", "requests pass the gate during an event",
     "hold/newcomerDuringReclaim hold/burst2",
     [(HOLD_HEADER, "return gate_.empty();", "return MUTANT || gate_.empty();")]),
    ("not_drained_at_unlock", "the mutex is let go of, and deferred frees are not looked for",
     "hold/deferredFrees",
     [(MUTEX_HEADER, "    if (work_.pending()) [[unlikely]]\n      catchUp();",
       "    if (!MUTANT && work_.pending()) [[unlikely]]\n      catchUp();")]),
    ("drained_only_once", "nobody looks again after having done deferred work",
     "hold/deferredFrees",
     [(MUTEX, "  while (work_.pending() && tryLock()) workAndRelease();",
       "  while (work_.pending() && tryLock()) {\n    workAndRelease();\n    if (MUTANT) break;\n  }")]),
    ("revoked_without_a_barrier", "who ends an ownership may miss that the owner is just coming in",
     "mutex/ownerAndTrier mutex/ownerAndLocker",
     [(BIASED, "  if (last_seat_->thread != thisThreadToken()) heavyBarrier();",
       "  if (!MUTANT && last_seat_->thread != thisThreadToken()) heavyBarrier();")]),
    ("owner_looks_once", "an owner comes in without a second look whether it still is one",
     "mutex/ownerAndTrier mutex/ownerAndLocker",
     [(BIASED_HEADER, "      if (owner_.load(std::memory_order_relaxed) == seat) [[likely]] {",
       "      if (MUTANT || owner_.load(std::memory_order_relaxed) == seat) [[likely]] {")]),
    ("owner_not_waited_for", "who locks does not wait until the owner is out",
     "mutex/ownerAndLocker",
     [(BIASED, "!ownerIsOut(); ++looks) backOff(looks);", "!ownerIsOut() && !MUTANT; ++looks) backOff(looks);")]),
    ("leaves_at_once", "who finds the owner inside goes without a look for those who met it meanwhile",
     "mutex/ownerAndTrier mutex/ownerAndTwoTriers mutex/ownersInTurn",
     [(BIASED, "    if (seat.inside.load", "    if (MUTANT || seat.inside.load")]),
    ("looks_again_too_early", "... and whose look may miss what the owner has just done",
     "mutex/ownerAndTrier mutex/ownerAndTwoTriers mutex/ownersInTurn",
     [(BIASED, "before this barrier.\n    heavyBarrier();", "before this barrier.\n    if (!MUTANT) heavyBarrier();")]),
    ("one_seat_for_all", "a former owner writes where the present one does",
     "mutex/ownersInTurn",
     [(BIASED, "candidate.thread == thisThreadToken() ||", "MUTANT || candidate.thread == thisThreadToken() ||")]),
    ("work_done_twice", "deferred work is done without a look whether it is there",
     "hold/destroyWithFreesInFlight",
     [(MUTEX, "  if (work_.pending()) work_.run();  //", "  if (MUTANT || work_.pending()) work_.run();  //")]),
    ("searched_without_draining", "a search does not see deferred frees",
     "hold/deferredFreeBeforeSearch",
     [(REQUEST, "  engine_.cell_.mutex.runDeferred();\n  if (served_) return true;",
       "  if (!MUTANT) engine_.cell_.mutex.runDeferred();\n  if (served_) return true;"),
      (ENGINE, "  cell_.mutex.runDeferred();\n  if (!admit()", "  if (!MUTANT) cell_.mutex.runDeferred();\n  if (!admit()")]),
    ("overtaking_unbounded", "the first one is overtaken for ever",
     "release/boundedOvertaking",
     [(ROOM_HEADER, "return overtakes_ < overtake_limit_;", "return MUTANT || overtakes_ < overtake_limit_;")]),
    ("last_come_first_served", "the queue is a stack",
     "release/firstComeFirstServed",
     [(ROOM_HEADER, "      room_.places_.push_back(*this);",
       "      if (MUTANT) {\n        room_.places_.push_front(*this);\n      } else {\n        room_.places_.push_back(*this);\n      }")]),
    ("handed_and_lost", "memory handed to an interrupted request is not given back",
     "release/interruptWhileAsleep",
     [(REQUEST, "  if (served_ && !taken_)", "  if (!MUTANT && served_ && !taken_)")]),
    ("destroyed_too_early", "an engine goes while a request is inside",
     "hold/destroyDuringReclaim release/destroyDuringReclaim",
     [(ENGINE, " || requests_inside_ != 0) return;", " || (!MUTANT && requests_inside_ != 0)) return;")]),
    ("unregistered_in_flight", "unregistering does not wait for a run",
     "hold/unregisterInFlight",
     [(CHAIN, "    if (!elsewhere) return;", "    if (MUTANT || !elsewhere) return;")]),
    ("two_ask_the_device", "two threads ask the device at a time",
     "hold/growthRace hold/growthAgainstPressure",
     [(REQUEST, "  if (engine_.device_calls_ != 0) {", "  if (!MUTANT && engine_.device_calls_ != 0) {")]),
    ("gil_kept_over_a_wait", "the slow path is taken with the GIL kept",
     "hold/pythonBurst release/pythonBurst",
     [(MODEL, "  Detached const detached(interpreter);\n  return world.request(blocks, options);",
       "  std::optional<Detached> detached;\n  if (!MUTANT) detached.emplace(interpreter);\n  return world.request(blocks, options);")]),
    ("attached_under_the_mutex", "the callback attaches with the mutex held",
     "hold/pythonBurst hold/nativeAndPython",
     [(MODEL, "  lock.unlock();\n  Attached", "  if (!MUTANT) lock.unlock();\n  Attached")]),
    ("no_op_taken_for_nothing", "a collection that did not run counts as one that found nothing",
     "hold/collectorBusy release/collectorBusy",
     [(MODEL, "    if (collecting_thread_.load() == -1 && collect()) return Outcome::ran;",
       "    if (MUTANT) {\n      (void)collect();\n      return Outcome::ran;\n    }\n"
       "    if (collecting_thread_.load() == -1 && collect()) return Outcome::ran;")]),
    ("finalizer_waits", "a request from inside a collection waits like any other",
     "hold/finalizerAsksFirst release/finalizerAsksFirst",
     [(MODEL, "  if (interpreter.collectingHere()) {", "  if (!MUTANT && interpreter.collectingHere()) {")]),
]


def targets():
    return sorted({path for _, _, _, pieces in MUTANTS for path, _, _ in pieces})


def write(root, output):
    sources = {path: (root / path).read_text(encoding="utf-8") for path in targets()}
    originals = dict(sources)
    lines = []
    errors = []
    for number, (name, about, scenarios, pieces) in enumerate(MUTANTS, start=1):
        lines.append(f'{{{number}, "{name}", "{about}", "{scenarios}"}},')
        for path, old, new in pieces:
            if originals[path].count(old) != 1 or sources[path].count(old) != 1:
                errors.append(f"{path}: mutant {name}: this text is not there once:\n{old}")
                continue
            switch = f"::flex::interleave::isActive({number})"
            sources[path] = sources[path].replace(old, new.replace("MUTANT", switch))
    if errors:
        sys.exit("\n".join(errors))
    for path, text in sources.items():
        copy = output / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_text(encoding="utf-8") != text:
            copy.write_text(text, encoding="utf-8")
    (output / "mutant_table.inc").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    if sys.argv[1:] == ["--list"]:
        print(";".join(targets()), end="")
    elif len(sys.argv) == 4 and sys.argv[1] == "--write":
        write(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
