import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** As much of JSON as the driver's lines need: numbers are whole. */
final class Json {
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> read(String line) {
        return (Map<String, Object>) new Json(line).value();
    }

    private char next() {
        while (Character.isWhitespace(text.charAt(at))) {
            at++;
        }
        return text.charAt(at);
    }

    private boolean takes(char wanted) {
        boolean is = next() == wanted;
        at += is ? 1 : 0;
        return is;
    }

    private Object value() {
        char first = next();
        if (first == '{') {
            return map();
        } else if (first == '[') {
            return list();
        } else if (first == '"') {
            return string();
        }
        int from = at;
        while (at < text.length() && ",]} \t".indexOf(text.charAt(at)) < 0) {
            at++;
        }
        String word = text.substring(from, at);
        return switch (word) {
            case "true" -> true;
            case "false" -> false;
            case "null" -> null;
            default -> Long.valueOf(word);
        };
    }

    private Map<String, Object> map() {
        var map = new LinkedHashMap<String, Object>();
        at++;
        while (!takes('}')) {
            takes(',');
            next();
            String key = string();
            takes(':');
            map.put(key, value());
        }
        return map;
    }

    private List<Object> list() {
        var list = new ArrayList<>();
        at++;
        while (!takes(']')) {
            takes(',');
            list.add(value());
        }
        return list;
    }

    private String string() {
        var string = new StringBuilder();
        for (at++; text.charAt(at) != '"'; at++) {
            char one = text.charAt(at);
            if (one != '\\') {
                string.append(one);
                continue;
            }
            one = text.charAt(++at);
            switch (one) {
                case 'n' -> string.append('\n');
                case 't' -> string.append('\t');
                case 'r' -> string.append('\r');
                case 'b' -> string.append('\b');
                case 'f' -> string.append('\f');
                case 'u' -> {
                    string.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                    at += 4;
                }
                default -> string.append(one);
            }
        }
        at++;
        return string.toString();
    }

    static String write(Object value) {
        if (value instanceof Map<?, ?> map) {
            var parts = new ArrayList<String>();
            map.forEach((key, one) -> parts.add(write(key) + ":" + write(one)));
            return "{" + String.join(",", parts) + "}";
        } else if (value instanceof List<?> list) {
            return "[" + String.join(",", list.stream().map(Json::write).toList()) + "]";
        } else if (value instanceof String string) {
            var quoted = new StringBuilder("\"");
            for (char one : string.toCharArray()) {
                if (one < ' ' || one == '"' || one == '\\' || one > '~') {
                    quoted.append("\\u%04x".formatted((int) one));
                } else {
                    quoted.append(one);
                }
            }
            return quoted.append('"').toString();
        }
        return String.valueOf(value);
    }
}
