package org.comm4j.benchmarks.walls;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/// The pages' links lead somewhere: to a file that is there, and to a heading that it has.
class LinksTest {
  private static final Path PROJECT = Path.of("..").toAbsolutePath().normalize();
  private static final Pattern LINK = Pattern.compile("]\\(([^)\\s#]*)(?:#([^)\\s]*))?\\)");
  private static final Pattern HEADING = Pattern.compile("(?m)^#+ (.*)$");
  private static final Pattern CODE = Pattern.compile("(?ms)^ *```.*?^ *```");

  @Test
  void links_ofAllPages_leadSomewhere() throws IOException {
    List<Path> pages = pages();
    assertThat(pages).contains(PROJECT.resolve("README.md"), PROJECT.resolve("docs/tuning.md"));
    List<String> broken = new ArrayList<>();
    for (Path page : pages) {
      LINK.matcher(text(page))
          .results()
          .filter(link -> !link.group(1).contains(":") && !leadsSomewhere(page, link))
          .forEach(link -> broken.add(PROJECT.relativize(page) + ": " + link.group()));
    }
    assertThat(broken).isEmpty();
  }

  private static boolean leadsSomewhere(Path page, MatchResult link) {
    Path target = link.group(1).isEmpty() ? page : page.resolveSibling(link.group(1)).normalize();
    String heading = link.group(2);
    return Files.exists(target) && (heading == null || anchors(target).contains(heading));
  }

  /// The names of a page's headings, as the sites that show it make them.
  private static Set<String> anchors(Path page) {
    return HEADING
        .matcher(text(page))
        .results()
        .map(heading -> heading.group(1).strip().toLowerCase(Locale.ROOT))
        .map(heading -> heading.replaceAll("[^\\p{L}\\p{N}_ -]", "").replace(' ', '-'))
        .collect(Collectors.toSet());
  }

  private static String text(Path page) {
    try {
      return CODE.matcher(Files.readString(page)).replaceAll("");
    } catch (IOException e) {
      throw new AssertionError(page + " can't be read", e);
    }
  }

  private static List<Path> pages() throws IOException {
    List<Path> pages = new ArrayList<>();
    try (Stream<Path> top = Files.list(PROJECT)) {
      for (Path folder : top.filter(Files::isDirectory).toList()) {
        addPages(folder, pages);
      }
    }
    addPages(PROJECT, pages);
    return pages;
  }

  private static void addPages(Path folder, List<Path> pages) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      all.filter(file -> file.toString().endsWith(".md")).forEach(pages::add);
    }
  }
}
