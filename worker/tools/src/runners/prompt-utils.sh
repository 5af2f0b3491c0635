# Functions for tools in Bash. Tools load them with: source "$LLM_PROMPT_UTILS_FILE"
#
# Nobody sits before the terminal of a worker. Guards refuse unless AUTO_CONFIRM is set, and questions fail.

_say() { printf '%s: %s\n' "$1" "${*:2}" >&2; }
error() { _say error "$@"; }
warn() { _say warning "$@"; }
info() { _say info "$@"; }
debug() { _say debug "$@"; }
trace() { _say trace "$@"; }
success() { _say success "$@"; }

_plain() { printf '%s\n' "$*"; }
red() { _plain "$@"; }
green() { _plain "$@"; }
gold() { _plain "$@"; }
blue() { _plain "$@"; }
magenta() { _plain "$@"; }
cyan() { _plain "$@"; }
white() { _plain "$@"; }

_no_terminal() {
  error "\"$1\" asks a person, and there is no terminal; use the tools user__ask, user__confirm and user__input"
  exit 1
}
input() { _no_terminal input; }
password() { _no_terminal password; }
editor() { _no_terminal editor; }
range() { _no_terminal range; }
confirm() { _no_terminal confirm; }
list() { _no_terminal list; }
checkbox() { _no_terminal checkbox; }
with_validate() { _no_terminal with_validate; }
validate_present() { [[ -n ${1-} ]] || { error "a value is required"; return 1; }; }
open_link() { _no_terminal open_link; }
get_opener() { _no_terminal get_opener; }

detect_os() {
  case "$OSTYPE" in
    solaris*) echo solaris ;;
    darwin*) echo macos ;;
    linux*) echo linux ;;
    bsd* | *bsd*) echo bsd ;;
    msys* | cygwin*) echo windows ;;
    *) echo unknown ;;
  esac
}

guard_operation() {
  [[ -n ${AUTO_CONFIRM-} || -n ${LLM_AGENT_VAR_AUTO_CONFIRM-} ]] && return 0
  error "not confirmed: ${1:-this operation}. Run the agent with AUTO_CONFIRM to allow it."
  exit 1
}

# A path inside the working folder needs no confirmation.
guard_path() {
  local path
  path=$(realpath -m -- "$1") || exit 1
  case "$path/" in
    "$(pwd -P)"/*) return 0 ;;
  esac
  guard_operation "${2:-$path}"
}

# Prints a file after a diff that has hunks alone.
patch_file() {
  local folder
  folder=$(mktemp -d) || return 1
  { printf -- '--- a\n+++ a\n'; cat -- "$2"; printf '\n'; } >"$folder/diff"
  cp -- "$1" "$folder/a"
  if patch --silent --force "$folder/a" "$folder/diff" >&2; then
    cat -- "$folder/a"
    rm -r -- "$folder"
  else
    rm -r -- "$folder"
    error "a hunk does not fit \"$1\""
    return 1
  fi
}
