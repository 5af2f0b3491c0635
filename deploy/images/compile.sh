#!/bin/sh
# Compiles the programs of the images into a folder, for the processor TARGETARCH on one of BUILDARCH: sh compile.sh FOLDER
set -eu
: "${TARGETARCH:?BuildKit sets it}" "${BUILDARCH:?BuildKit sets it}"

case $TARGETARCH in
amd64) triple=x86_64-unknown-linux-gnu gcc=x86-64-linux-gnu ;;
arm64) triple=aarch64-unknown-linux-gnu gcc=aarch64-linux-gnu ;;
*)
    echo "there are no images for the processor $TARGETARCH: choose amd64 or arm64" >&2
    exit 2
    ;;
esac

if [ "$TARGETARCH" != "$BUILDARCH" ]; then
    apt-get update
    apt-get install --yes --no-install-recommends "gcc-$gcc" "libc6-dev-$TARGETARCH-cross"
    rustup target add "$triple"
    variable=$(echo "CARGO_TARGET_${triple}_LINKER" | tr a-z- A-Z_)
    compiler=$(echo "$gcc-gcc" | sed 's/^x86-64/x86_64/')
    export "$variable=$compiler"
fi

cargo build --locked --profile dist --target "$triple" \
    --bin atlas-controller --bin atlas-worker --bin atlas-operator --bin atlasctl
mkdir -p "$1"
cd "target/$triple/dist"
mv atlas-controller atlas-worker atlas-operator atlasctl "$1"
