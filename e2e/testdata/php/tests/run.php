<?php

require __DIR__ . '/../src/Basket.php';

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
$basket = new Basket(new mysqli(getenv('DB_HOST'), getenv('DB_USER'), getenv('DB_PASSWORD'), getenv('DB_NAME'), (int) getenv('DB_PORT')));

function same(int $expected, int $actual, string $what): void
{
    if ($expected !== $actual) {
        fwrite(STDERR, "$what: $actual, expected $expected\n");
        exit(1);
    }
    echo "ok: $what\n";
}

$basket->clear();
same(0, $basket->total(), 'an empty basket');
$basket->add('pencil', 150, 1);
same(150, $basket->total(), 'one piece');
