# keeper.bash - what the services for tests have in common; sourced by `postgres` and `redis`.
#
#   <service> start DIR [OWNER]    starts it in DIR, prints its URL; OWNER (a pid, else the caller)
#   <service> stop DIR             stops it and removes DIR
#
# A keeper process holds the server as its child. It ends the server and removes DIR when it is told
# to, or when OWNER is no more; and the kernel ends the server if the keeper itself is killed. So
# nothing stays behind, however a test ends. In bash name yourself: `url=$(postgres start DIR $$)`,
# for the caller is then a subshell.
#
# A service defines: service_user (who it runs as when we are root), prepare, launch (sets
# server_pid), is_ready, url, and stop_signal. They find the directory in $dir.

set -euo pipefail

START_SECONDS=60
STOP_SECONDS=20

# As the service's user when we are root, and to die with this shell.
as_server() {
    local who=()
    if [ "$(id -u)" = 0 ]; then
        who=(--reuid "$(id -u "$service_user")" --regid "$(id -g "$service_user")" --clear-groups)
    fi
    exec setpriv "${who[@]}" --pdeathsig "$stop_signal" -- "$@"
}

pick_user() {
    id -u "$service_user" >/dev/null 2>&1 || service_user=nobody
}

# A zombie does not run, whoever fails to collect it.
is_running() {
    [ -e "/proc/$1" ] && ! grep -qs '^State:.*zombie' "/proc/$1/status"
}

# The directory, and the one `with` made around it once both services have left.
clear_away() {
    rm -rf "$dir"
    case ${dir%/*} in
    */retort-services-*) rmdir "${dir%/*}" 2>/dev/null || true ;;
    esac
}

wait_until_ready() {
    local end=$((SECONDS + START_SECONDS))
    until is_ready; do
        is_running "$server_pid" || { echo "the server has ended" >&2; return 1; }
        [ $SECONDS -lt $end ] || { echo "not ready after $START_SECONDS s" >&2; return 1; }
        sleep 0.05
    done
}

end_server() {
    trap - TERM INT HUP EXIT
    if [ -n "${server_pid:-}" ]; then
        kill -s "$stop_signal" "$server_pid" 2>/dev/null || true
        wait "$server_pid" || true
    fi
    [ "${1:-}" = keep-log ] || clear_away
}

keep() {
    trap end_server TERM INT HUP EXIT
    pick_user
    [ "$(id -u)" != 0 ] || chown "$service_user" "$dir"
    (cd / && prepare) && launch && wait_until_ready || { end_server keep-log; exit 1; }
    url >"$dir/url.new" && mv "$dir/url.new" "$dir/url"
    while is_running "$owner" && is_running "$server_pid"; do
        sleep 0.2 &
        wait $! || true
    done
}

start() {
    mkdir -p "$dir"
    setsid "$0" keep "$dir" "$owner" </dev/null >"$dir/log" 2>&1 &
    local keeper=$! end=$((SECONDS + START_SECONDS))
    echo "$keeper" >"$dir/keeper"
    until [ -s "$dir/url" ]; do
        if [ $SECONDS -ge $end ] || ! is_running "$keeper"; then
            kill "$keeper" 2>/dev/null || true
            echo "$0: no server in $dir:" >&2
            cat "$dir"/log >&2 2>/dev/null || true
            exit 1
        fi
        sleep 0.02
    done
    cat "$dir/url"
}

stop() {
    [ -s "$dir/keeper" ] || return 0
    local keeper end=$((SECONDS + STOP_SECONDS))
    keeper=$(cat "$dir/keeper")
    kill "$keeper" 2>/dev/null || true
    while is_running "$keeper"; do
        [ $SECONDS -lt $end ] || { echo "$0: the server in $dir does not stop" >&2; exit 1; }
        sleep 0.02
    done
    clear_away
}

service_main() {
    [ $# -ge 2 ] || { echo "usage: $0 start DIR [OWNER] | stop DIR" >&2; exit 2; }
    dir=$(realpath -m "$2")
    owner=${3:-$PPID}
    case $1 in
    start | keep | stop) "$1" ;;
    *) echo "$0: start or stop, not $1" >&2; exit 2 ;;
    esac
}
