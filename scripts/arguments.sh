# shellcheck shell=bash disable=SC2034,SC2154 # the scripts that source it use what is set here, and set `python`
# Shared by the scripts that start commands, which source it: where the checkout is, and how arguments are read.

script="${0##*/}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
here="$root/"
[[ $PWD != "$root" ]] || here="" # so that what is made does not quote where the checkout is

# Prints the comment at the head of the script.
usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; }

mistake() { echo "$script: $*" >&2 && exit 2; }

# Sorts arguments: read_arguments COMMAND SWITCHES VALUED LISTS "$@". What the script itself understands is in
# `switches` (" --quick ") and `out`; `names` are those without a dash; `arguments` is all the rest, with the values of
# options that have one (VALUED) or several (LISTS). --help also prints that of `rota COMMAND`, if one is named.
read_arguments() {
    local command="$1" own=" $2 " valued=" $3 " lists=" $4 " next="" argument
    shift 4
    switches=" " out="" names=() arguments=()
    for argument in "$@"; do
        [[ $next != list || $argument != -* ]] || next="" # there are no more of them
        case "$next:$argument" in
            out:*) out="$argument" next="" ;;
            value:*) arguments+=("$argument") && next="" ;;
            list:*) arguments+=("$argument") ;;
            :--out) next=out ;;
            :--out=*) out="${argument#--out=}" ;;
            :-h | :--help)
                usage
                [[ -z $command ]] || exec "$python" -P -m rota "$command" --help
                exit
                ;;
            :-*)
                if [[ $own == *" $argument "* ]]; then switches+="$argument " && continue; fi
                [[ $valued != *" $argument "* ]] || next=value
                [[ $lists != *" $argument "* ]] || next=list
                arguments+=("$argument")
                ;;
            *) names+=("$argument") ;;
        esac
    done
    [[ -z $next || $next == list ]] || mistake "${*: -1}: what? Give it a value"
}
