{{- define "nccl-inspector.image" -}}
{{ required "image.repository: name the image that was built by a release's Containerfile" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "nccl-inspector.labels" -}}
app.kubernetes.io/name: nccl-inspector
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "nccl-inspector.selector" -}}
app.kubernetes.io/name: nccl-inspector
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- define "nccl-inspector.fullname" -}}
{{- if contains "nccl-inspector" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}{{ printf "%s-nccl-inspector" (.Release.Name | trunc 35 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- /* A container that needs nothing of its node: no capability, no way to more rights, nothing to write but its volumes. */}}
{{- define "nccl-inspector.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "nccl-inspector.boxes" -}}
- name: nccl-inspector-boxes
  {{- if .Values.boxes.hostPath }}
  hostPath: {path: {{ .Values.boxes.hostPath | quote }}, type: DirectoryOrCreate}
  {{- else }}
  emptyDir: {medium: Memory, sizeLimit: {{ .Values.boxes.sizeLimit | quote }}}
  {{- end }}
{{- end }}

{{- define "nccl-inspector.logs" -}}
- name: nccl-inspector-logs
  {{- toYaml .Values.logs.volume | nindent 2 }}
{{- end }}

{{- define "nccl-inspector.mounts" -}}
- {name: nccl-inspector-boxes, mountPath: {{ .Values.boxes.mountPath | quote }}}
- {name: nccl-inspector-logs, mountPath: {{ .Values.logs.mountPath | quote }}}
{{- end }}
