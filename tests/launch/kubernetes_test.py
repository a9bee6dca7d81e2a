# SPDX-License-Identifier: Apache-2.0
"""Checks the examples for Kubernetes without a cluster: what they start, and their form where kubernetes-validate is installed.

kubernetes_test.py SOURCE SYNTRA Examples|Schemas
"""

from __future__ import annotations

import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

try:
    import yaml

    if sys.argv[3] == "Schemas":
        import kubernetes_validate
except ImportError as error:
    print(f"[  SKIPPED ] this Python has no module {error.name}")
    sys.exit(77)

SOURCE, SYNTRA = Path(sys.argv[1]), sys.argv[2]
Part = dict[str, Any]


def example(name: str) -> Part:
    return yaml.safe_load((SOURCE / "launch/kubernetes" / name).read_text())


def pods(spec: Part) -> dict[str, Part]:
    """The pod template of each role."""
    if "template" in spec:
        return {"Job": spec["template"]}
    return {role: replicas["template"] for role, replicas in spec["mpiReplicaSpecs"].items()}


def container(pod: Part) -> Part:
    (only,) = pod["spec"]["containers"]
    return only


def settings(pod: Part) -> dict[str, str]:
    """What --set says, by field."""
    args = container(pod)["args"]
    values = [value for flag, value in zip(args, args[1:]) if flag == "--set"]
    return dict(value.split("=", 1) for value in values)


class Examples(unittest.TestCase):
    """Of both files."""

    def setUp(self) -> None:
        self.seeds = example("seeds.yaml")["spec"]
        self.mpi = example("mpijob.yaml")["spec"]

    def test_the_configurations_can_be_read(self) -> None:
        for pod in (pods(self.seeds)["Job"], pods(self.mpi)["Launcher"]):
            args = [arg.replace("$(JOB_COMPLETION_INDEX)", "2") for arg in container(pod)["args"]]
            self.assertEqual(args[0], "pretrain")
            shown = subprocess.run(
                [SYNTRA, "config", "show", *args[1:]], cwd=SOURCE, capture_output=True, text=True
            )
            self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_exit_codes_say_what_is_tried_again(self) -> None:
        actions: dict[int, str] = {}
        for rule in self.seeds["podFailurePolicy"]["rules"]:
            codes = rule.get("onExitCodes")
            if codes:
                self.assertEqual(codes["containerName"], container(self.seeds["template"])["name"])
                actions |= dict.fromkeys(codes["values"], rule["action"])
        self.assertEqual(actions.pop(75), "Ignore")
        self.assertEqual(set(actions.values()), {"FailIndex"})
        self.assertEqual(sorted(actions), [2, 3, 5, 6, 70])
        # What the rules need.
        self.assertEqual(self.seeds["template"]["spec"]["restartPolicy"], "Never")
        self.assertEqual(self.seeds["completionMode"], "Indexed")
        self.assertIn("backoffLimitPerIndex", self.seeds)

    def test_every_index_has_a_run_of_its_own(self) -> None:
        chosen = settings(self.seeds["template"])
        for field in ("train.seed", "train.directory"):
            self.assertTrue(chosen[field].endswith("$(JOB_COMPLETION_INDEX)"), field)

    def test_ranks_fill_the_workers(self) -> None:
        launcher, workers = pods(self.mpi)["Launcher"], self.mpi["mpiReplicaSpecs"]["Worker"]
        program, ranks, started = container(launcher)["command"]
        self.assertEqual((program, started), ("ranks", "syntra"))
        self.assertEqual(int(ranks), workers["replicas"] * self.mpi["slotsPerWorker"])

    def test_threads_fill_the_limit(self) -> None:
        worker = container(pods(self.mpi)["Worker"])
        threads = int(settings(pods(self.mpi)["Launcher"])["train.threads"])
        self.assertEqual(
            int(worker["resources"]["limits"]["cpu"]), threads * self.mpi["slotsPerWorker"]
        )
        alone = self.seeds["template"]
        limits = container(alone)["resources"]["limits"]
        self.assertEqual(limits["cpu"], settings(alone)["train.threads"])

    def test_runs_are_mounted_where_they_are_written(self) -> None:
        for directory, pod in (
            (settings(self.seeds["template"])["train.directory"], self.seeds["template"]),
            (settings(pods(self.mpi)["Launcher"])["train.directory"], pods(self.mpi)["Worker"]),
        ):
            (mount,) = container(pod)["volumeMounts"]
            (volume,) = pod["spec"]["volumes"]
            self.assertEqual(mount["name"], volume["name"])
            self.assertTrue(directory.startswith(mount["mountPath"] + "/"))


class Schemas(unittest.TestCase):
    """Kubernetes' own, as its API server applies them."""

    def test_the_job(self) -> None:
        kubernetes_validate.validate(example("seeds.yaml"), "1.33", strict=True)

    def test_the_pods_of_the_operator(self) -> None:
        for role, pod in pods(example("mpijob.yaml")["spec"]).items():
            named = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": role.lower()}}
            kubernetes_validate.validate(named | {"template": pod}, "1.33", strict=True)

    def test_a_mistake_is_noticed(self) -> None:
        job = example("seeds.yaml")
        job["spec"]["template"]["spec"]["restartPolicies"] = "Never"
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(job, "1.33", strict=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], sys.argv[3]])
