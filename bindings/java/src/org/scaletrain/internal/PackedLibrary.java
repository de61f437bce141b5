package org.scaletrain.internal;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The native libraries inside of the jar, unpacked into a folder that is named for their content: so it is written once, another version's
 * is another, and what lies there is compared before it is used. Any number of processes at once: each file is written beside its place and
 * moved there whole.
 */
final class PackedLibrary {
  static final String PLACE = "native/linux-x86_64/";
  static final String CACHE = "org.scaletrain.cache";

  private PackedLibrary() {}

  /** The file to load, or null when this jar has none. */
  static Path unpack() throws IOException {
    Map<String, byte[]> files = new LinkedHashMap<>();
    try (InputStream list = resource("files")) {  // a name a line, what others need first
      if (list == null) return null;
      for (String name : new String(list.readAllBytes(), java.nio.charset.StandardCharsets.UTF_8).split("\n"))
        if (!name.isBlank()) files.put(name.strip(), read(name.strip()));
    }
    Path folder = cache().resolve("java-" + hash(files));
    try {
      Files.createDirectories(folder);
      for (Map.Entry<String, byte[]> file : files.entrySet()) put(folder.resolve(file.getKey()), file.getValue());
    } catch (IOException error) {
      throw new IOException("scaletrain: its native library cannot be unpacked into " + folder + " (" + reason(error)
          + "); the property " + CACHE + " names another folder, which may be written and whose files may be executed", error);
    }
    return folder.resolve(NativeLibrary.FILE).toAbsolutePath();
  }

  private static InputStream resource(String name) {
    return PackedLibrary.class.getResourceAsStream("/" + PLACE + name);
  }

  private static byte[] read(String name) throws IOException {
    try (InputStream stream = resource(name)) {
      if (stream == null) throw new IOException("scaletrain: this jar is not whole: " + PLACE + name + " is missing in it");
      return stream.readAllBytes();
    }
  }

  /** Where the property says, or where programs keep such things. */
  private static Path cache() {
    String given = System.getProperty(CACHE);
    if (given != null) return Path.of(given).toAbsolutePath();
    String xdg = System.getenv("XDG_CACHE_HOME");
    Path parent = xdg != null && xdg.startsWith("/") ? Path.of(xdg) : Path.of(System.getProperty("user.home"), ".cache");
    return parent.resolve("scaletrain").toAbsolutePath();
  }

  private static String hash(Map<String, byte[]> files) {
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      files.values().forEach(digest::update);
      return HexFormat.of().formatHex(digest.digest(), 0, 8);
    } catch (NoSuchAlgorithmException never) {
      throw new IllegalStateException(never);
    }
  }

  /** Leaves a file that is right as it is: another process may have it loaded. */
  private static void put(Path file, byte[] content) throws IOException {
    if (Files.isRegularFile(file) && Files.size(file) == content.length && Arrays.equals(Files.readAllBytes(file), content)) return;
    Path whole = Files.createTempFile(file.getParent(), file.getFileName().toString(), ".part");
    try {
      Files.write(whole, content);
      move(whole, file);
    } finally {
      Files.deleteIfExists(whole);
    }
  }

  private static void move(Path from, Path to) throws IOException {
    try {
      Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (AtomicMoveNotSupportedException | FileAlreadyExistsException elsewhere) {
      Files.move(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
  }

  private static String reason(IOException error) {
    return error.getClass().getSimpleName() + (error.getMessage() == null ? "" : ": " + error.getMessage());
  }
}
