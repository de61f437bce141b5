package org.scaletrain.internal;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.FileSystemNotFoundException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import org.scaletrain.Unavailable;
import org.scaletrain.Unsupported;

/**
 * Loads the native library. It looks in the folder that the property {@code org.scaletrain.library.path} names, then inside the jar, then
 * next to the jar (as in the build tree).
 */
public final class NativeLibrary {
  static final String FOLDER = "org.scaletrain.library.path";
  static final String FILE = "libscaletrain_java.so";

  private static final String FAILURE = failure();

  private NativeLibrary() {}

  /** Throws if the library could not be loaded, on every call. */
  public static void require() {
    if (FAILURE != null) throw new Unavailable(FAILURE);
  }

  private static String failure() {
    try {
      load();
      return null;
    } catch (Unavailable missing) {
      return missing.getMessage();
    }
  }

  private static void load() {
    String os = System.getProperty("os.name"), machine = System.getProperty("os.arch");
    if (!os.equals("Linux") || !(machine.equals("amd64") || machine.equals("x86_64")))
      throw new Unavailable("scaletrain supports Linux on x86-64; this is " + os + " on " + machine);
    Path file = find();
    try {
      System.load(file.toString());
    } catch (UnsatisfiedLinkError error) {
      throw new Unavailable("scaletrain: " + file + " cannot be loaded: " + error.getMessage()
          + "; if the folder is mounted noexec, set the property " + PackedLibrary.CACHE + " to another folder to unpack into");
    }
    try {
      Native.require_headers();
    } catch (Unsupported other) {
      throw new Unavailable(
          "scaletrain: " + file + " has loaded a library of another version than it was built for: " + other.getMessage());
    }
  }

  private static Path find() {
    String folder = System.getProperty(FOLDER);
    if (folder != null) {
      Path file = Path.of(folder, FILE).toAbsolutePath();
      if (!Files.isRegularFile(file))
        throw new Unavailable("scaletrain: " + file + " does not exist; check the property " + FOLDER + ", which names its folder");
      return file;
    }
    try {
      Path inside = PackedLibrary.unpack();
      if (inside != null) return inside;
    } catch (IOException error) {
      throw new Unavailable(error.getMessage());
    }
    Path beside = beside();
    if (beside != null && Files.isRegularFile(beside)) return beside;
    throw new Unavailable("scaletrain: " + FILE + " is neither in the jar (" + PackedLibrary.PLACE + ") nor next to it"
        + (beside == null ? "" : " (" + beside + ")") + "; set the property " + FOLDER + " to the folder that has it");
  }

  /** The file in the folder that contains the jar or the class folder; null if there is none. */
  private static Path beside() {
    CodeSource source = NativeLibrary.class.getProtectionDomain().getCodeSource();
    if (source == null) return null;
    try {
      URI place = source.getLocation().toURI();
      Path parent = Path.of(place).getParent();
      return parent == null ? null : parent.resolve(FILE).toAbsolutePath();
    } catch (URISyntaxException | IllegalArgumentException | FileSystemNotFoundException inNoFile) {
      return null;
    }
  }
}
