{{- /*
What a job's pod needs, for charts of jobs that have this one as a dependency. The context is this chart's:
  {{ include "nccl-inspector.job.env" (index .Subcharts "nccl-inspector") }}
*/}}

{{- define "nccl-inspector.job.volumes" -}}
- name: nccl-inspector
  emptyDir: {sizeLimit: 64Mi}
{{ include "nccl-inspector.boxes" . }}
{{ include "nccl-inspector.logs" . }}
{{- end }}

{{- define "nccl-inspector.job.mounts" -}}
- {name: nccl-inspector, mountPath: /opt/nccl-inspector, readOnly: true}
{{ include "nccl-inspector.mounts" . }}
{{- end }}

{{- /* Brings the library, and the command with the libraries that it needs, into the pod. */}}
{{- define "nccl-inspector.job.init" -}}
- name: nccl-inspector
  image: {{ include "nccl-inspector.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  command:
    - sh
    - -c
    - |
      set -e
      cp "$(ls /usr/lib/libnccl-profiler-inspector.so /usr/local/lib/libnccl-profiler-inspector.so 2>/dev/null | head -n 1)" /to/
      mkdir -p /to/bin /to/lib
      command=$(command -v nccl-inspector)
      cp "$command" /to/bin/
      ldd "$command" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | grep -vE '/(libc|libm|libpthread|libdl|librt)\.so' |
        while read -r lib; do cp -L "$lib" /to/lib/; done
  securityContext: {{- include "nccl-inspector.locked" . | nindent 4 }}
    runAsUser: {{ .Values.job.runAsUser }}
    runAsGroup: {{ .Values.job.runAsGroup }}
    runAsNonRoot: {{ ne (int .Values.job.runAsUser) 0 }}
    seccompProfile: {type: RuntimeDefault}
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 64Mi}
  volumeMounts:
    - {name: nccl-inspector, mountPath: /to}
{{- end }}

{{- define "nccl-inspector.job.env" -}}
- {name: NCCL_PROFILER_PLUGIN, value: /opt/nccl-inspector/libnccl-profiler-inspector.so}
- {name: NCCL_INSPECTOR_ENABLE, value: "1"}
- {name: NCCL_INSPECTOR_DUMP_DIR, value: {{ printf "%s/%%j" .Values.logs.mountPath | quote }}}
- {name: NCCL_INSPECTOR_BLACKBOX, value: {{ .Values.boxes.mountPath | quote }}}
- name: JOB_NAME
  valueFrom: {fieldRef: {fieldPath: {{ printf "metadata.labels['%s']" .Values.job.nameLabel | quote }}}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- range $name, $value := .Values.job.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- /* Before a pod is stopped: what its processes have not written, beside the job's logs. Never longer than 20 s, never fails. */}}
{{- define "nccl-inspector.job.lifecycle" -}}
preStop:
  exec:
    command:
      - sh
      - -c
      - >-
        LD_LIBRARY_PATH=/opt/nccl-inspector/lib timeout 20 /opt/nccl-inspector/bin/nccl-inspector snapshot --exit-zero --quiet
        --box-dir "$NCCL_INSPECTOR_BLACKBOX" --output "{{ .Values.logs.mountPath }}/$JOB_NAME/boxes-$POD_NAME"
        "{{ .Values.logs.mountPath }}/$JOB_NAME" || true
{{- end }}
