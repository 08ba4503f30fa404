{{/* The release's name, with the chart's in it. 40 characters, since suffixes follow. */}}
{{- define "parallelrun.fullname" -}}
{{- $name := .Chart.Name -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "parallelrun.operator" -}}
{{ include "parallelrun.fullname" . }}-operator
{{- end -}}

{{- define "parallelrun.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "parallelrun.operator" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* By the name and the component the NetworkPolicies of jobs know the operator: they are fixed. */}}
{{- define "parallelrun.selectorLabels" -}}
app.kubernetes.io/name: parallelrun
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* Of pods: without what changes with the chart alone. */}}
{{- define "parallelrun.podLabels" -}}
{{ include "parallelrun.selectorLabels" . }}
app.kubernetes.io/part-of: parallelrun
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "parallelrun.labels" -}}
{{ include "parallelrun.podLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* metadata: takes root, name, and what may be: namespace (false: none), labels, annotations. */}}
{{- define "parallelrun.metadata" -}}
name: {{ .name }}
{{- if ne (toString .namespace) "false" }}
namespace: {{ default .root.Release.Namespace .namespace }}
{{- end }}
labels:
  {{- include "parallelrun.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default (dict) .annotations) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* An image's reference: takes root and image. */}}
{{- define "parallelrun.image" -}}
{{- $registry := default .image.registry .root.Values.global.imageRegistry -}}
{{- $repository := ternary (printf "%s/%s" $registry .image.repository) .image.repository (ne $registry "") -}}
{{- if .image.digest -}}
{{ $repository }}@{{ .image.digest }}
{{- else -}}
{{ $repository }}:{{ default .root.Chart.AppVersion .image.tag }}
{{- end -}}
{{- end -}}

{{/* What the operator may do where it watches jobs. */}}
{{- define "parallelrun.rules" -}}
- apiGroups: [parallelrun.dev]
  resources: [parallelrunjobs]
  verbs: [list, watch, delete]
- apiGroups: [parallelrun.dev]
  resources: [parallelrunjobs/status]
  verbs: [patch]
- apiGroups: [parallelrun.dev]
  resources: [parallelrunjobs/finalizers]
  verbs: [update]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: [""]
  resources: [services, secrets]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, delete]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [list, create, patch]
{{- if .Values.jobs.networkPolicies }}
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create, patch, delete]
{{- end }}
{{- if .Values.jobs.disruptionBudgets }}
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, create, patch, delete]
{{- end }}
{{- end -}}
