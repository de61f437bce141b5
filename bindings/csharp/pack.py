"""Lays out the NuGet package in a folder and zips it to a .nupkg file.

pack.py FOLDER VERSION FILE...     copies each file to the place for its kind, unless it is already there

The assembly refers only to mscorlib and System.Core, since Mono's compiler does not know netstandard.dll. It uses only types that netstandard2.1
has (Span, Memory, MemoryManager), so it is packed under netstandard2.1. Tested on Mono 6.8 and .NET 8.
"""

import pathlib
import shutil
import sys
import zipfile

NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2012/06/nuspec.xsd">
  <metadata>
    <id>ScaleTrain</id>
    <version>{version}</version>
    <authors>ScaleTrain</authors>
    <license type="file">LICENSE</license>
    <description>Train neural networks inside a program: graphs, optimizers, products and weights over its own arrays. Linux, x64, glibc 2.28.</description>
    <tags>machine-learning training neural-network native</tags>
    <dependencies>
      <group targetFramework=".NETStandard2.1" />
    </dependencies>
  </metadata>
</package>
"""
TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
{kinds}</Types>
"""
RELATIONSHIPS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/ScaleTrain.nuspec" Id="R1" />
</Relationships>
"""


def place_of(file: pathlib.Path) -> pathlib.PurePath:
    if file.suffix in (".dll", ".xml"):
        return pathlib.PurePath("lib/netstandard2.1", file.name)
    if ".so" in file.name:
        return pathlib.PurePath("runtimes/linux-x64/native", file.name)
    return pathlib.PurePath(file.name)


def kinds_of(names: list[str]) -> str:
    """The content types of the files: one per extension, and one per file without extension."""
    extensions = sorted({pathlib.PurePath(name).suffix[1:] for name in names} - {""})
    bare = [name for name in names if not pathlib.PurePath(name).suffix]
    lines = [f'  <Default Extension="{one}" ContentType="application/octet" />\n' for one in extensions]
    return "".join(lines + [f'  <Override PartName="/{one}" ContentType="application/octet" />\n' for one in bare])


def main(folder: str, version: str, *files: str) -> None:
    root = pathlib.Path(folder)
    (root / "ScaleTrain.nuspec").write_text(NUSPEC.format(version=version))
    names = ["ScaleTrain.nuspec"]
    for file in map(pathlib.Path, files):
        place = root / place_of(file)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place != file:
            shutil.copyfile(file, place)
        names.append(place_of(file).as_posix())
    with zipfile.ZipFile(root / f"ScaleTrain.{version}.nupkg", "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("[Content_Types].xml", TYPES.format(kinds=kinds_of(names)))
        package.writestr("_rels/.rels", RELATIONSHIPS)
        for name in names:
            package.write(root / name, name)


if __name__ == "__main__":
    main(*sys.argv[1:])
