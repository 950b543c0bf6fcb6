"""The schedule does what its README says."""

import unittest

from schedule import learning_rate

RUN = {"total_steps": 1000, "warmup_steps": 200, "max_lr": 3e-4, "min_lr": 3e-5}


class ScheduleTest(unittest.TestCase):
    def test_warm_up_ends_at_the_maximum(self):
        self.assertAlmostEqual(learning_rate(199, **RUN), 3e-4)

    def test_it_never_rises_after_the_warm_up(self):
        rates = [learning_rate(step, **RUN) for step in range(200, 1001)]
        self.assertEqual(rates, sorted(rates, reverse=True))

    def test_the_last_step_reaches_the_minimum(self):
        self.assertAlmostEqual(learning_rate(1000, **RUN), 3e-5)


if __name__ == "__main__":
    unittest.main()
