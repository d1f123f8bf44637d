"""unpack_wheel.py WHEEL FROM TO [GLOB...]: takes the files under FROM/ out of a wheel into TO/.

With globs, only files whose path below FROM matches one of them; a glob that matches nothing is an error, because the
wheel then is not what this repository was written for.
"""

import fnmatch
import os
import shutil
import sys
import zipfile


def main() -> None:
    wheel, source, target, *globs = sys.argv[1:]
    prefix = source.rstrip("/") + "/"
    unmatched = set(globs)
    count = size = 0
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            if not entry.filename.startswith(prefix) or entry.is_dir():
                continue
            name = entry.filename[len(prefix) :]
            hits = {glob for glob in globs if fnmatch.fnmatch(name, glob)}
            if globs and not hits:
                continue
            unmatched -= hits
            path = os.path.join(target, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(entry) as packed, open(path, "wb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
            count, size = count + 1, size + entry.file_size
    if unmatched or not count:
        sys.exit(f"{os.path.basename(wheel)}: nothing matches {sorted(unmatched) or [source]} under {prefix}")
    print(f"  unpacked {count} files, {size / 1e6:.0f} MB, from {os.path.basename(wheel)}")


main()
