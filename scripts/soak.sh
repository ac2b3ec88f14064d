#!/usr/bin/env bash
# Faults for half an hour: random kills, full disks, damaged files, commands at the same time. Prints a
# line for each round and a summary; exits with 1 if a run was lost, a result differs from that of an
# undisturbed run, or a command crashed.
#
#   bash scripts/soak.sh [MINUTES] [SREN]
set -u
minutes=${1:-30}
sren=$(realpath "${2:-target/release/sren}")
work=$(mktemp -d)
disk=$work/disk
trap 'kill $(jobs -p) 2>/dev/null; umount "$disk" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
mkdir "$disk"
faults=0 lost=0 differ=0 crashes=0

# Pictures in two class folders.
for class in few many; do
    mkdir -p "images/$class"
    for i in $(seq 0 19); do
        digit=$i; [ "$class" = few ] || digit=$((i + 100))
        "$sren" -q pose "mnist:$digit" -o "images/$class/$i.png" > /dev/null || exit 1
    done
done

# The training of a round: digits or pictures.
arguments() {
    if [ "$1" = digits ]; then
        echo "--preset quick --images 256 --epochs 4 --batch 32"
    else
        echo "--data $work/images --size 16 --epochs 4 --batch 8"
    fi
}
result() { sha256sum < "$1/model.safetensors"; }
below() { echo $((RANDOM * 32768 + RANDOM)) | awk -v most="$1" '{ print $1 % most }'; }
pause() { sleep "$(awk -v ms="$(below "$1")" 'BEGIN { print ms / 1000 }')"; }
# A command that may fail, but not crash.
try() {
    timeout 300 "$sren" -q "$@" > "$work/out" 2> "$work/err"
    local code=$?
    if [ $code -eq 101 ] || [ $code -gt 128 ]; then
        crashes=$((crashes + 1))
        echo "crash $code: sren $*: $(tail -1 "$work/err")"
    fi
    return $code
}
# Resumes a run to its end and compares it.
finish() {
    if ! try train --resume "$1" --threads 1 --test-images 10; then
        lost=$((lost + 1))
        echo "lost: $1: $(tail -1 "$work/err")"
    elif [ "$(result "$1")" != "${expected[$2]}" ]; then
        differ=$((differ + 1))
        echo "differs: $1"
    fi
}
# Starts a training in the background, as process $run.
start() {
    # shellcheck disable=SC2046
    "$sren" -q train $(arguments "$2") --threads 1 --test-images 10 --out "$1" > /dev/null 2>&1 &
    run=$!
}

declare -A expected length
for kind in digits pictures; do
    begin=$(date +%s%N)
    start "whole-$kind" "$kind"
    wait $run || { echo "the undisturbed run failed"; exit 1; }
    length[$kind]=$((($(date +%s%N) - begin) / 1000000))
    expected[$kind]=$(result "whole-$kind")
    echo "undisturbed, $kind: ${length[$kind]} ms"
done

killed() {
    start round "$1"
    for _ in 1 2 3; do
        pause "${length[$1]}"
        kill -s "$2" $run 2>/dev/null && faults=$((faults + 1))
        wait $run 2>/dev/null
        [ -e round/config.toml ] || { rm -rf round; start round "$1"; continue; }
        "$sren" -q train --resume round --threads 1 --test-images 10 > /dev/null 2>&1 &
        run=$!
    done
    pause "${length[$1]}"
    kill -s "$2" $run 2>/dev/null && faults=$((faults + 1))
    wait $run 2>/dev/null
    finish round "$1"
}

full_disk() {
    local size=$((64 + $(below 2000)))
    if ! mount -t tmpfs -o "size=${size}k" none "$disk" 2>/dev/null; then
        (trap '' XFSZ; ulimit -f $((size / 2)); start round "$1"; wait $run)
        faults=$((faults + 1))
        [ -e round/config.toml ] || { rm -rf round; start round "$1"; wait $run; }
        finish round "$1"
        return
    fi
    start "$disk/run" "$1"
    wait $run 2>/dev/null
    faults=$((faults + 1))
    mount -o remount,size=200m "$disk"
    [ -e "$disk/run/config.toml" ] || { rm -rf "$disk/run"; start "$disk/run" "$1"; wait $run; }
    finish "$disk/run" "$1"
    umount "$disk"
}

damaged() {
    local file size at
    for file in model.safetensors checkpoint/state.safetensors config.toml metrics.jsonl; do
        rm -rf round && cp -r "whole-$1" round
        size=$(stat -c %s "round/$file")
        case $(below 3) in
            0) truncate -s "$(below "$size")" "round/$file" ;;
            1) head -c "$(below 100)" /dev/urandom >> "round/$file" ;;
            *) at=$(below "$size")
               printf '\xa5' | dd of="round/$file" bs=1 seek="$at" conv=notrunc status=none ;;
        esac
        faults=$((faults + 1))
        cmp -s "round/$file" "whole-$1/$file" && continue
        # A damaged model or state is refused.
        case $file in
            model*) try predict round "$work/images/few/0.png" && { differ=$((differ + 1)); echo "predicts: $file"; } ;;
            checkpoint*) try train --resume round --epochs 5 --test-images 10 && { differ=$((differ + 1)); echo "resumes: $file"; } ;;
            *) try train --resume round --test-images 10; try eval round --images 10 ;;
        esac
    done
}

together() {
    start round "$1"
    local first=$run
    while [ ! -e round/config.toml ] && kill -0 $first 2>/dev/null; do sleep 0.01; done
    for _ in 1 2 3; do
        "$sren" -q train --resume round --threads 1 --test-images 10 > /dev/null 2>&1 &
        faults=$((faults + 1))
    done
    try eval "whole-$1" --images 10
    try predict "whole-$1" "$work/images/many/1.png"
    wait
    finish round "$1"
}

end=$(($(date +%s) + 60 * minutes))
rounds=0
while [ "$(date +%s)" -lt $end ]; do
    rm -rf round
    kind=$([ "$(below 2)" = 0 ] && echo digits || echo pictures)
    case $(below 5) in
        0) name=kill; killed "$kind" KILL ;;
        1) name=terminate; killed "$kind" TERM ;;
        2) name=full; full_disk "$kind" ;;
        3) name=damage; damaged "$kind" ;;
        *) name=together; together "$kind" ;;
    esac
    rounds=$((rounds + 1))
    echo "round $rounds, $name, $kind: $faults faults, $lost lost, $differ differ, $crashes crashes"
done
echo "$rounds rounds: faults injected $faults, runs lost $lost, results that differ $differ, crashes $crashes"
[ $((lost + differ + crashes)) -eq 0 ]
