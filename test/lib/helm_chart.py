"""Judges what helm rendered for test/cases/kits/helm_chart.sh: DIR/{default,all,memory}.yaml. Writes there
what others look at:
operator.json, rules.yaml, init.sh, prestop.sh."""
import json
import re
import sys

import kubernetes_validate
import yaml

OPERATOR = ("PodMonitor", "PrometheusRule")


def pod_of(o):
    return o["spec"]["template"]["spec"] if "template" in o.get("spec", {}) else None


def containers(pod):
    return pod.get("initContainers", []) + pod["containers"]


def locked(where, pod, may_add):
    """No container has more than it says here, and each has a read-only root."""
    assert (pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"} and
            pod["automountServiceAccountToken"] is False), where
    for c in containers(pod):
        s = c["securityContext"]
        assert (s["capabilities"]["drop"] == ["ALL"] and
                set(s["capabilities"].get("add", [])) <= may_add), (where, c["name"], s)
        assert (s["readOnlyRootFilesystem"] is True and s["allowPrivilegeEscalation"] is False and
                not s.get("privileged")), (where, c["name"])
        assert c["resources"]["limits"]["memory"], (where, c["name"])
        mounts = [m["mountPath"] for m in c["volumeMounts"]]
        assert (len(mounts) == len(set(mounts)) and
                {m["name"] for m in c["volumeMounts"]} <= {v["name"] for v in pod["volumes"]}), where


def main(folder):
    rendered = {}
    for name in ("default", "all", "memory"):
        with open(f"{folder}/{name}.yaml") as f:
            rendered[name] = objects = [o for o in yaml.safe_load_all(f) if o]
        for o in objects:
            if o["kind"] not in OPERATOR:
                for release in ("1.25", "1.31", "1.37"):
                    kubernetes_validate.validate(o, release, strict=True)
    kinds = {name: sorted(o["kind"] for o in objects) for name, objects in rendered.items()}
    assert kinds["default"] == ["DaemonSet", "NetworkPolicy", "ServiceAccount"], kinds
    assert kinds["all"] == sorted(kinds["default"] +
                                  ["ConfigMap", "ConfigMap", "Job", "PodMonitor", "PrometheusRule"]), kinds
    of = {name: {o["kind"]: o for o in objects} for name, objects in rendered.items()}

    everybody = {"SETUID", "SETGID", "KILL", "DAC_READ_SEARCH"}
    for name in rendered:
        for o in rendered[name]:
            if pod_of(o):
                locked((name, o["kind"]), pod_of(o),
                       everybody if name == "all" and o["kind"] == "DaemonSet" else set())
    # What the text beside agent.allUsers promises is what it adds.
    words = re.sub(r"\s*\n\s*#\s*", " ", open("packaging/helm/nccl-inspector/values.yaml").read())
    promised = re.search(r"with the (\w+) capabilities that it needs ([^.]*), and no other", words)
    agent = of["all"]["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]
    added = agent["securityContext"]["capabilities"]["add"]
    assert (promised.group(1) == {4: "four", 5: "five"}[len(added)] and
            set(re.findall(r"[A-Z_]{4,}", promised.group(2))) == set(added)), promised
    # It listens for all, so a policy says who reaches it: as narrow as nothing else was asked for, and of its
    # pods and port alone.
    assert "--open" in agent["args"]
    for name, allowed in (("default", [{"podSelector": {}}]), ("all", [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}])):
        policy, daemons = of[name]["NetworkPolicy"]["spec"], of[name]["DaemonSet"]["spec"]
        labels = daemons["template"]["metadata"]["labels"]
        assert (policy["podSelector"]["matchLabels"].items() <= labels.items() and
                policy["policyTypes"] == ["Ingress"]), policy
        port, = daemons["template"]["spec"]["containers"][0]["ports"]
        assert policy["ingress"] == [{"from": allowed,
                                      "ports": [{"protocol": "TCP", "port": port["name"]}]}], policy
    # What the host is asked for: one folder, by default; nothing at all where boxes are in the pod's memory.
    def host(o):
        return [v["hostPath"]["path"] for v in pod_of(o)["volumes"] if "hostPath" in v]
    assert (host(of["default"]["DaemonSet"]) == ["/run/nccl-inspector"] and
            host(of["all"]["Job"]) == ["/run/nccl-inspector"])
    for o in rendered["memory"]:
        if pod_of(o):
            assert not host(o) and not pod_of(o).get("hostNetwork"), o["kind"]
            # Pod Security "restricted": what locked() asks for, and no root.
            assert all(c["securityContext"]["runAsUser"] == 1000 and c["securityContext"]["runAsNonRoot"]
                       for c in containers(pod_of(o)))
            assert all(set(v) & {"emptyDir", "persistentVolumeClaim", "secret"}
                       for v in pod_of(o)["volumes"]), o["kind"]
            assert any(v.get("emptyDir", {}).get("medium") == "Memory"
                       for v in pod_of(o)["volumes"]), o["kind"]

    agent = pod_of(of["all"]["DaemonSet"])["containers"][0]
    for option in ("--box-dir=/run/nccl-inspector", "--log-dir=/logs", "--token-file=/token/token",
                   "--every=5s", "--node=$(NODE_NAME)"):
        assert option in agent["args"], option
    job = pod_of(of["all"]["Job"])
    env = {e["name"]: e.get("value") or e["valueFrom"]["fieldRef"]["fieldPath"]
           for e in job["containers"][0]["env"]}
    assert env == {"NCCL_PROFILER_PLUGIN": "/opt/nccl-inspector/libnccl-profiler-inspector.so",
                   "NCCL_INSPECTOR_ENABLE": "1", "NCCL_INSPECTOR_DUMP_DIR": "/logs/%j",
                   "NCCL_INSPECTOR_BLACKBOX": "/run/nccl-inspector", "NCCL_INSPECTOR_EVENTS": "deep",
                   "JOB_NAME": "metadata.labels['batch.kubernetes.io/job-name']",
                   "POD_NAME": "metadata.name"}, env
    # jobs and agent have the same at the same place
    for volume in ("nccl-inspector-boxes", "nccl-inspector-logs"):
        same = [[v for v in p["volumes"] if v["name"] == volume] +
                [m for m in p["containers"][0]["volumeMounts"] if m["name"] == volume]
                for p in (job, pod_of(of["all"]["DaemonSet"]))]
        assert same[0] == same[1] and len(same[0]) == 2, same
    monitor, selector = of["all"]["PodMonitor"]["spec"], of["all"]["DaemonSet"]["spec"]["selector"]["matchLabels"]
    assert (monitor["selector"]["matchLabels"] == selector and
            selector.items() <= of["all"]["DaemonSet"]["spec"]["template"]["metadata"]["labels"].items())
    assert monitor["podMetricsEndpoints"][0]["port"] in [p["name"] for p in agent["ports"]]

    # Dashboards, rules and alerts are those of contrib/.
    for o in rendered["all"]:
        if o["kind"] == "ConfigMap":
            (name, text), = o["data"].items()
            assert json.loads(text) == json.load(open(f"contrib/grafana/{name}")), name
    groups = [g for part in ("rules", "alerts")
              for g in yaml.safe_load(open(f"contrib/prometheus/nccl-inspector-{part}.yml"))["groups"]]
    assert of["all"]["PrometheusRule"]["spec"]["groups"] == groups

    json.dump([of["all"][k] for k in OPERATOR], open(f"{folder}/operator.json", "w"))
    yaml.safe_dump(of["all"]["PrometheusRule"]["spec"], open(f"{folder}/rules.yaml", "w"))
    open(f"{folder}/init.sh", "w").write(job["initContainers"][0]["command"][2])
    open(f"{folder}/prestop.sh", "w").write(job["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2])


if __name__ == "__main__":
    main(sys.argv[1])
