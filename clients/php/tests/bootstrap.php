<?php

declare(strict_types=1);

// What Composer installed, or else Debian's packages.
$composer = __DIR__ . '/../vendor/autoload.php';
if (is_file($composer)) {
    require $composer;
} else {
    require __DIR__ . '/../autoload.php';
    foreach (['Predis', 'Symfony/Component/Lock', 'Illuminate/Cache', 'Illuminate/Config', 'Illuminate/Container',
        'Illuminate/Events', 'Illuminate/Redis', 'Illuminate/Console', 'Illuminate/Queue'] as $library) {
        $file = stream_resolve_include_path("$library/autoload.php");
        if ($file !== false) {
            require_once $file;
        }
    }
}
spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Rlock\\Tests\\')) {
        require __DIR__ . '/' . strtr(substr($class, 12), '\\', '/') . '.php';
    }
});
