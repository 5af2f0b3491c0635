{{/* The prefix of all names. */}}
{{- define "atlas.name" -}}
{{- printf "%s" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "atlas.labels" -}}
app.kubernetes.io/name: atlas
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "atlas.selector" -}}
app.kubernetes.io/name: atlas
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "atlas.secret" -}}
{{- .Values.auth.existingSecret | default (printf "%s-auth" (include "atlas.name" .)) -}}
{{- end -}}

{{- define "atlas.tag" -}}
{{- .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{/* host:PORT of every controller, separated by commas. */}}
{{- define "atlas.members" -}}
{{- $name := include "atlas.name" .root -}}
{{- $members := list -}}
{{- range $at := until (int .root.Values.controllers.replicas) -}}
{{- $members = append $members (printf "%s-controller-%d.%s-controllers.%s.svc:%d" $name $at $name $.root.Release.Namespace (int $.port)) -}}
{{- end -}}
{{- join "," $members -}}
{{- end -}}

{{/* What the policy "restricted" asks of a pod. */}}
{{- define "atlas.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "atlas.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "atlas.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Not empty if KEDA scales a group of workers. */}}
{{- define "atlas.scales" -}}
{{- range .Values.workers }}{{- if .autoscaling }}{{- if not .autoscaling.metric }}yes{{- end }}{{- end }}{{- end }}
{{- end }}

{{/* Not empty if controllers and workers are encrypted. YAML reads a bare off as false. */}}
{{- define "atlas.tls" -}}
{{- if not (has (toString .Values.tls.mode) (list "off" "false")) }}yes{{- end }}
{{- end }}

{{- define "atlas.scheme" -}}
{{- ternary "https" "http" (eq (include "atlas.tls" .) "yes") -}}
{{- end -}}

{{/* The address of clients within the cluster. */}}
{{- define "atlas.host" -}}
{{- printf "%s.%s.svc" (include "atlas.name" .) .Release.Namespace -}}
{{- end -}}

{{/* The secret with the certificate of the cluster, and the key under which it is there. */}}
{{- define "atlas.caSecret" -}}
{{- if eq (toString .Values.tls.mode) "certManager" }}{{ include "atlas.name" . }}-ca{{ else }}{{ include "atlas.secret" . }}{{ end -}}
{{- end -}}

{{- define "atlas.caKey" -}}
{{- ternary "tls.crt" "ca.pem" (eq (toString .Values.tls.mode) "certManager") -}}
{{- end -}}

{{/* A source of a projected volume: the certificate of the cluster, which is public. */}}
{{- define "atlas.caSource" -}}
secret:
  name: {{ include "atlas.caSecret" . }}
  items: [{ key: {{ include "atlas.caKey" . }}, path: ca.pem }]
{{- end -}}
