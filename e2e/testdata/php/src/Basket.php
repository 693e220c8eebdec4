<?php

/** A basket kept in the table of its name. */
final class Basket
{
    public function __construct(private mysqli $db)
    {
        $db->query('CREATE TABLE IF NOT EXISTS basket (article VARCHAR(40) PRIMARY KEY, cents INT NOT NULL, pieces INT NOT NULL)');
    }

    public function add(string $article, int $cents, int $pieces): void
    {
        $this->db->execute_query('INSERT INTO basket VALUES (?, ?, ?)', [$article, $cents, $pieces]);
    }

    public function clear(): void
    {
        $this->db->query('DELETE FROM basket');
    }

    /** The sum of all pieces in cents. */
    public function total(): int
    {
        return (int) $this->db->query('SELECT SUM(cents) FROM basket')->fetch_column();
    }
}
