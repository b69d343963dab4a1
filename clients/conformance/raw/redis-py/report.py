"""A line for each pain, and whether all of them are gone."""
import traceback

failed = 0


def line(number, what, seen, good):
    global failed
    failed += not good
    print("ok" if good else "not ok", number, f"{what}: {seen}", flush=True)


def fault(number):
    global failed
    failed += 1
    print("not ok", number, traceback.format_exc(), flush=True)
