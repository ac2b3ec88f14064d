#!/usr/bin/env bash
# Load of `sren serve` on this machine: throughput beside that of the library in the same run, latency,
# and memory over many requests. Images are digits of 64 x 64 pixels, clients are 64 connections of wrk.
# Needs wrk and Python; all traffic is on 127.0.0.1.
#
#   bash scripts/load_serve.sh [SREN] [REQUESTS] [ROUNDS] [SECONDS]
set -euo pipefail
sren=$(realpath "${1:-target/release/sren}")
requests=${2:-100000}
rounds=${3:-5}
seconds=${4:-15}
clients=64
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$work"' EXIT

# 64 images of strokes, as PNG files.
python3 - "$work" << 'PYTHON'
import math, random, struct, sys, zlib

SIDE = 64
random.seed(1)

def png(rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", SIDE, SIDE, 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")

def distance(p, a, b):
    ax, ay, bx, by = *a, *b
    t = ((p[0] - ax) * (bx - ax) + (p[1] - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2 + 1e-9)
    t = min(1, max(0, t))
    return math.hypot(p[0] - ax - t * (bx - ax), p[1] - ay - t * (by - ay))

for number in range(64):
    points = [(random.uniform(14, 50), random.uniform(10, 54)) for _ in range(5)]
    lines = list(zip(points, points[1:]))
    ink = lambda x, y: round(255 * min(1, max(0, 3.5 - min(distance((x, y), *line) for line in lines))))
    rows = [[ink(x, y) for x in range(SIDE)] for y in range(SIDE)]
    open(f"{sys.argv[1]}/{number:02}.png", "wb").write(png(rows))
PYTHON

cat > "$work/post.lua" << LUA
local bodies, next = {}, 0
for number = 0, 63 do
  local file = assert(io.open(string.format("$work/%02d.png", number), "rb"))
  bodies[number] = wrk.format("POST", "/v1/predict", { ["Content-Type"] = "image/png" }, file:read("*a"))
  file:close()
end
function request()
  next = (next + 1) % 64
  return bodies[next]
end
function done(summary, latency)
  local errors = summary.errors
  local lost = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  local ms = function(percent) return latency:percentile(percent) / 1000 end
  print(string.format("RESULT %d %.1f %.1f %.1f %.1f %d", summary.requests,
    summary.requests / (summary.duration / 1e6), ms(50), ms(95), ms(99), lost))
end
LUA

"$sren" serve --port 0 > "$work/address" 2> "$work/errors" &
server=$!
until grep -q http "$work/address"; do sleep 0.1; done
address=$(sed 's/.* at //' "$work/address")

load() { wrk -t 1 -c $clients -d "$1s" --timeout 30s -s "$work/post.lua" "$address" | grep RESULT; }
memory() { awk '/VmRSS/ { printf "%d", $2 / 1024 }' "/proc/$server/status"; }
library() {
    for _ in $(seq 40); do printf '%s\n' "$work"/??.png; done |
        "$sren" predict mnist-sren - --json 2>&1 > /dev/null |
        sed -n 's/.*: \([0-9,]*\) images\/s.*/\1/p' | tr -d ,
}

echo "warming up"
load 5 > /dev/null
echo "round: library images/s, service requests/s, ratio, p50, p95, p99 in ms, lost"
for round in $(seq "$rounds"); do
    # One after the other, so that both see the same machine.
    before=$(library)
    read -r _ _ rate p50 p95 p99 lost <<< "$(load "$seconds")"
    after=$(library)
    awk -v r="$round" -v a="$before" -v b="$after" -v s="$rate" -v p50="$p50" -v p95="$p95" -v p99="$p99" -v lost="$lost" \
        'BEGIN { l = (a + b) / 2; printf "%d: %.0f, %.0f, %.2f, %s, %s, %s, %s\n", r, l, s, s / l, p50, p95, p99, lost }' |
        tee -a "$work/rounds"
done
sort -t, -k3 -g "$work/rounds" | awk -F', ' '{ r[NR] = $3 } END { print "median ratio: " r[int((NR + 1) / 2)] }'

echo "memory of the service over $requests requests"
total=0
echo "$total requests: $(memory) MB"
while [ "$total" -lt "$requests" ]; do
    read -r _ count _ _ _ _ lost <<< "$(load 20)"
    total=$((total + count))
    echo "$total requests: $(memory) MB, $lost lost"
done
[ ! -s "$work/errors" ] || cat "$work/errors"
