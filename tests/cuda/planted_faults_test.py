#!/usr/bin/python3
"""Each fault of a kernel is found by the simulated grid or, where it is a race, by ThreadSanitizer; right kernels are clean.

usage: planted_faults_test.py PLANTED_FAULTS PLANTED_FAULTS_UNDER_TSAN
"""
import os
import subprocess
import sys
import unittest

PLAIN, WATCHED = sys.argv[1:3]
ORDERS = ("eager", "late", "random")


def ran(program, fault, seed=1, order="eager"):
    return subprocess.run([program, fault, str(seed), order], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "TSAN_OPTIONS": "symbolize=0"})  # names of functions take longer than the run


class PlantedFaults(unittest.TestCase):
    def test_a_right_kernel_is_right_and_clean_in_every_order(self):
        for program in (PLAIN, WATCHED):
            for seed, order in enumerate(ORDERS):
                done = ran(program, "none", seed, order)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "sum 192, copy 192\n", ""), order)

    def test_what_threads_never_come_to_is_said_with_the_line(self):
        for program in (PLAIN, WATCHED):
            self.assertRegex(ran(program, "barrier_for_some").stdout,
                             r"^refused: block \d: thread \d+ is at sync_block of line \d+ while others are at line \d+$")
            done = ran(program, "lone_shuffle")
            self.assertRegex(done.stdout, r"^refused: block \d: deadlock; thread 0 waits at sync_block, line \d+; thread 1 waits at")
            self.assertEqual(done.stderr, "")

    def test_a_race_is_found_where_the_result_is_right_too(self):
        right = "sum 192, copy 192\n"
        for fault, expected in {"no_barrier": None, "no_second_barrier": right, "no_fence": right, "same_place": None, "no_wait": right}.items():
            done = ran(WATCHED, fault)
            self.assertIn("WARNING: ThreadSanitizer: data race", done.stderr, fault)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected or "", done.stdout, fault)

    def test_copies_on_their_way_are_waited_for(self):
        right = "copied 640\n"
        for program in (PLAIN, WATCHED):
            for seed in range(3):
                done = ran(program, "right_copies", seed)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, right, ""))
        self.assertRegex(ran(PLAIN, "no_copy_wait").stdout, "^copied -?nan\n$")
        self.assertRegex(ran(PLAIN, "early_copy").stdout, "^copied -?nan\n$")
        for fault in ("no_copy_barrier", "early_copy"):
            done = ran(WATCHED, fault)
            self.assertIn("WARNING: ThreadSanitizer: data race", done.stderr, fault)
            self.assertNotEqual(done.returncode, 0)

    def test_products_of_tiles_wait_for_copies_and_copies_for_products(self):
        right = "multiplied 4096\n"
        for program in (PLAIN, WATCHED):
            for seed in range(2):
                for kernel in ("right_ring", "right_stores"):
                    done = ran(program, kernel, seed)
                    self.assertEqual((done.returncode, done.stdout, done.stderr), (0, right, ""), (kernel, seed))
        # Seeds that are even run as late as may be.
        self.assertRegex(ran(PLAIN, "no_full_wait", 2).stdout, r"more arrivals than the barrier's phase counts")
        self.assertEqual(ran(PLAIN, "early_release", 0).stdout, "multiplied 0\n")
        self.assertRegex(ran(PLAIN, "early_sums", 0).stdout, r"wait_products gives sums to read, and products that are under way add to them")
        for seed, expected in {0: r"the block ends while a copy to its shared memory is under way",
                               1: r"deadlock; thread 0 waits at wait_phase, line \d+ \(to come: 0 arrivals, -\d+ bytes\)"}.items():
            self.assertRegex(ran(PLAIN, "wrong_bytes", seed).stdout, rf"^refused: block 0: {expected}")
        for fault, expected in {"no_full_wait": right, "early_release": None, "no_proxy_fence": right, "no_tile_barrier": right}.items():
            done = ran(WATCHED, fault)
            self.assertIn("WARNING: ThreadSanitizer: data race", done.stderr, fault)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(expected or "", done.stdout, fault)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
