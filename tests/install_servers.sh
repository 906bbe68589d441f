#!/usr/bin/env bash
# Install what slow tests run against, from Debian 12 and 13, in the versions that they were written for:
#   docker-registry, skopeo   with apt-get, which needs root
#   zsh, fish, graphviz       with apt-get: shells that complete names, diagrams of the docs' site
#   oras                      unpacked into a folder of its own: it stands alone
#   chromium                  with apt-get; Debian's security updates replace it, so a later one is taken where this one is gone
#   nodejs, npm               with apt-get, in any version that is there; npm's packages of tests/npm in that folder
#   libpython                 of the Python that runs the tests: Triton's Python backend loads it
#   ONNX Runtime's headers    unpacked into that folder, by the script that C++ packages hold
# Tests that miss one of them are skipped by name. Usage: tests/install_servers.sh [FOLDER for what is unpacked]
set -euo pipefail
REGISTRY=2.8.2+ds1-1 SKOPEO=1.9.3+ds1-1+b10 ORAS=1.2.0-1+b9
CHROMIUM=156.0.8078.79-1~deb12u1
ORAS_FOLDER=${1:-$(dirname "$0")/../.servers}

installed() { dpkg-query -W -f '${Version}' "$1" 2>/dev/null || true; }

if [[ $(installed docker-registry) != "$REGISTRY" || $(installed skopeo) != "$SKOPEO" ]]; then
    # The package would start a registry of its own, and enable it: it is only to be there.
    apt-get update -q
    RUNLEVEL=1 apt-get install -q -y --no-install-recommends "docker-registry=$REGISTRY" "skopeo=$SKOPEO"
fi

libpython=libpython$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! ldconfig -p | grep -q "$libpython.so.1.0"; then
    apt-get install -q -y --no-install-recommends "$libpython" || echo "no $libpython: Triton's tests are skipped" >&2
fi
SHELLS=(zsh=5.9-4+b15 fish=3.6.0-3.1+deb12u1 graphviz=2.42.2-7+deb12u1)
for each in "${SHELLS[@]}"; do
    if [[ $(installed "${each%%=*}") != "${each#*=}" ]]; then
        apt-get update -q
        apt-get install -q -y --no-install-recommends "${SHELLS[@]}"
        break
    fi
done

if [[ ! -x $ORAS_FOLDER/usr/bin/oras ]]; then
    lists=$(mktemp -d)
    trap 'rm -rf "$lists"' EXIT
    chmod 755 "$lists"
    mkdir -p "$lists/state/partial" "$lists/cache/archives/partial"
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' | sed -n 's/^Debian //p' | grep -v security | sort -u | head -1)
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    echo "deb [signed-by=$key] $mirror trixie main" >"$lists/sources.list"
    trixie=(-o "Dir::Etc::sourcelist=$lists/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$lists/state" -o "Dir::Cache=$lists/cache" -o APT::Sandbox::User=root)
    apt-get "${trixie[@]}" update -q
    (cd "$lists" && apt-get "${trixie[@]}" download -q "oras=$ORAS")
    mkdir -p "$ORAS_FOLDER"
    dpkg -x "$lists"/oras_*.deb "$ORAS_FOLDER"
fi
"$ORAS_FOLDER/usr/bin/oras" version | sed -n 1p

if [[ -z $(installed chromium) ]]; then
    apt-get update -q
    apt-get install -q -y --no-install-recommends "chromium=$CHROMIUM" || apt-get install -q -y --no-install-recommends chromium
fi

bash "$(dirname "$0")/../onnxbuild/onnxkit/cpp/templates/fetch_headers.sh.j2" "$ORAS_FOLDER/onnxruntime-headers"

if ! command -v npm >/dev/null; then
    apt-get update -q
    apt-get install -q -y --no-install-recommends nodejs npm
fi
list=$(dirname "$0")/npm
if ! cmp -s "$list/package-lock.json" "$ORAS_FOLDER/npm/package-lock.json"; then
    rm -rf "$ORAS_FOLDER/npm" "$ORAS_FOLDER/npm.tmp"
    cp -r "$list" "$ORAS_FOLDER/npm.tmp"
    (cd "$ORAS_FOLDER/npm.tmp" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
    mv "$ORAS_FOLDER/npm.tmp" "$ORAS_FOLDER/npm"
fi
